import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;

/** The scenarios of groups with the admin client, from 2.0 on. */
@SuppressWarnings({"deprecation", "removal"}) // state() and listConsumerGroups() exist in all releases from 2.0 on
final class GroupScenarios {
    private GroupScenarios() {
    }

    static void listGroups(Run run) throws Exception {
        commit(run, 1);
        try (AdminClient admin = TopicScenarios.admin(run)) {
            run.report("listed", isListed(admin, run));
        }
    }

    static void commit(Run run, long... offsets) {
        try (Reader reader = Reader.assigned(run, offsets.length)) {
            for (int partition = 0; partition < offsets.length; partition++) {
                reader.commit(partition, offsets[partition], "");
            }
        }
    }

    private static boolean isListed(AdminClient admin, Run run) throws Exception {
        return admin.listConsumerGroups().all().get().stream().anyMatch(group -> group.groupId().equals(run.name));
    }

    static void describeGroup(Run run) throws Exception {
        try (AdminClient admin = TopicScenarios.admin(run)) {
            Member member = new Member(run);
            member.await(2);
            ConsumerGroupDescription group = awaitMembers(admin, run, 1);
            run.report("state", group.state().toString());
            run.report("members", group.members().size());
            run.report("assigned", assigned(group.members().iterator().next()));
            member.close();
            run.report("then", awaitMembers(admin, run, 0).state().toString());
        }
    }

    private static List<Integer> assigned(MemberDescription member) {
        List<Integer> partitions = new ArrayList<>();
        member.assignment().topicPartitions().forEach(partition -> partitions.add(partition.partition()));
        Collections.sort(partitions);
        return partitions;
    }

    /** Describes the group until it has this many members: close() does not wait for the response to LeaveGroup. */
    static ConsumerGroupDescription awaitMembers(AdminClient admin, Run run, int count) throws Exception {
        long limit = System.nanoTime() + Reader.LIMIT_MS * 1_000_000;
        while (System.nanoTime() < limit) {
            ConsumerGroupDescription group =
                admin.describeConsumerGroups(Collections.singleton(run.name)).all().get().get(run.name);
            if (group.members().size() == count) {
                return group;
            }
            Thread.sleep(10);
        }
        throw new TimeoutException("a group with " + count + " members");
    }

    static void deleteGroup(Run run) throws Exception {
        commit(run, 1);
        try (AdminClient admin = TopicScenarios.admin(run)) {
            Run.Call delete = () -> admin.deleteConsumerGroups(Collections.singleton(run.name)).all().get();
            Member member = new Member(run);
            member.await(1);
            run.report("busy", Run.errorOf(delete));
            member.close();
            awaitMembers(admin, run, 0);
            run.report("deleted", Run.errorOf(delete));
            run.report("listed", isListed(admin, run));
            run.report("again", Run.errorOf(delete));
        }
    }

    static void listGroupOffsets(Run run) throws Exception {
        commit(run, 3, 7);
        try (AdminClient admin = TopicScenarios.admin(run)) {
            run.report("offsets", offsets(admin, run));
        }
    }

    static Map<Integer, Long> offsets(AdminClient admin, Run run) throws Exception {
        Map<Integer, Long> found = new TreeMap<>();
        admin.listConsumerGroupOffsets(run.name).partitionsToOffsetAndMetadata().get()
            .forEach((partition, offset) -> found.put(partition.partition(), offset.offset()));
        return found;
    }
}
