import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;

/** The scenarios of group members. */
final class MemberScenarios {
    private static final String COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";

    private MemberScenarios() {
    }

    static void twoMembers(Run run) throws Exception {
        Member first = new Member(run);
        Member second = new Member(run);
        run.report("both", Arrays.asList(first.await(2), second.await(2)));
        first.close();
        run.report("alone", second.await(4));
        second.close();
    }

    static void staticMember(Run run) throws Exception {
        try {
            ConsumerConfig.class.getField("GROUP_INSTANCE_ID_CONFIG");
        } catch (NoSuchFieldException notInThisRelease) {
            throw new Unsupported("no static members");
        }
        Member first = new Member(run, Collections.singletonMap("group.instance.id", "one"));
        Member second = new Member(run, Collections.singletonMap("group.instance.id", "two"));
        run.report("both", Arrays.asList(first.await(2), second.await(2)));
        int before = second.rebalances();
        first.close();
        Member again = new Member(run, Collections.singletonMap("group.instance.id", "one"));
        run.report("again", again.await(2));
        run.report("rebalances", second.rebalances() - before);
        again.close();
        second.close();
    }

    static void cooperative(Run run) throws Exception {
        try {
            Class.forName(COOPERATIVE);
        } catch (ClassNotFoundException notInThisRelease) {
            throw new Unsupported("no cooperative assignor");
        }
        Map<String, String> settings = Collections.singletonMap("partition.assignment.strategy", COOPERATIVE);
        Member first = new Member(run, settings);
        first.await(4);
        Member second = new Member(run, settings);
        run.report("both", Arrays.asList(first.await(2), second.await(2)));
        run.report("revoked", first.revoked());
        first.close();
        run.report("alone", second.await(4));
        second.close();
    }
}
