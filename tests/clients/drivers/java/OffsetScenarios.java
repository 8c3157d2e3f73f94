import java.util.Collections;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.common.TopicPartition;

/** The scenarios of single offsets with the admin client, from 2.4 on. */
final class OffsetScenarios {
    private OffsetScenarios() {
    }

    static void deleteOffsets(Run run) throws Exception {
        GroupScenarios.commit(run, 3, 7);
        TopicPartition partition = new TopicPartition(run.name, 0);
        try (AdminClient admin = TopicScenarios.admin(run)) {
            Run.Call delete = () ->
                admin.deleteConsumerGroupOffsets(run.name, Collections.singleton(partition)).partitionResult(partition).get();
            Member member = new Member(run);
            member.await(2);
            run.report("busy", Run.errorOf(delete));
            member.close();
            GroupScenarios.awaitMembers(admin, run, 0);
            run.report("deleted", Run.errorOf(delete));
            run.report("left", GroupScenarios.offsets(admin, run));
        }
    }
}
