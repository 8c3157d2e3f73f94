import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The scenarios of topics with the admin client, from 0.11 on. */
final class TopicScenarios {
    private TopicScenarios() {
    }

    static AdminClient admin(Run run) {
        Properties config = Security.settings(run.bootstrap);
        return AdminClient.create(config);
    }

    static void createTopic(Run run) throws Exception {
        try (AdminClient admin = admin(run)) {
            create(admin, run);
            run.report("partitions", described(admin, run).partitions().size());
            run.report("again", Run.errorOf(() -> create(admin, run)));
        }
    }

    private static void create(AdminClient admin, Run run) throws Exception {
        admin.createTopics(Collections.singleton(new NewTopic(run.name, 3, (short) 1))).all().get();
    }

    /** Describes the topic until the brokers' metadata has it. */
    private static TopicDescription described(AdminClient admin, Run run) throws Exception {
        long limit = System.nanoTime() + Reader.LIMIT_MS * 1_000_000;
        while (System.nanoTime() < limit) {
            try {
                return all(admin.describeTopics(Collections.singleton(run.name))).get().get(run.name);
            } catch (ExecutionException failed) {
                if (!(failed.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw failed;
                }
                Thread.sleep(10);
            }
        }
        throw new TimeoutException("the topic");
    }

    /** 3.1 renamed all() to allTopicNames(), 4.0 removed all(). */
    @SuppressWarnings("unchecked")
    private static KafkaFuture<Map<String, TopicDescription>> all(DescribeTopicsResult result) throws Exception {
        String name;
        try {
            name = DescribeTopicsResult.class.getMethod("allTopicNames").getName();
        } catch (NoSuchMethodException older) {
            name = "all";
        }
        return (KafkaFuture<Map<String, TopicDescription>>) DescribeTopicsResult.class.getMethod(name).invoke(result);
    }
}
