import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;

/** Members that come and go. */
final class MemberScenarios {
    private static final String COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";

    private MemberScenarios() {
    }

    static void twoMembers(Run run) throws Exception {
        Member first = new Member(run);
        Member second = new Member(run);
        run.tell("both", Arrays.asList(first.await(2), second.await(2)));
        first.close();
        run.tell("alone", second.await(4));
        second.close();
    }

    static void staticMember(Run run) throws Exception {
        try {
            ConsumerConfig.class.getField("GROUP_INSTANCE_ID_CONFIG");
        } catch (NoSuchFieldException notInThisRelease) {
            throw new Unsupported("members are not static");
        }
        Member first = new Member(run, Collections.singletonMap("group.instance.id", "one"));
        Member second = new Member(run, Collections.singletonMap("group.instance.id", "two"));
        run.tell("both", Arrays.asList(first.await(2), second.await(2)));
        int before = second.rebalances();
        first.close();
        Member again = new Member(run, Collections.singletonMap("group.instance.id", "one"));
        run.tell("again", again.await(2));
        run.tell("rebalances", second.rebalances() - before);
        again.close();
        second.close();
    }

    static void cooperative(Run run) throws Exception {
        try {
            Class.forName(COOPERATIVE);
        } catch (ClassNotFoundException notInThisRelease) {
            throw new Unsupported("no assignor is cooperative");
        }
        Map<String, String> settings = Collections.singletonMap("partition.assignment.strategy", COOPERATIVE);
        Member first = new Member(run, settings);
        first.await(4);
        Member second = new Member(run, settings);
        run.tell("both", Arrays.asList(first.await(2), second.await(2)));
        run.tell("revoked", first.revoked());
        first.close();
        run.tell("alone", second.await(4));
        second.close();
    }
}
