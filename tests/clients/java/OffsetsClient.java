import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The verbs of programs.py with kafka-clients: VERB BOOTSTRAP GROUP TOPIC [PARTITION:OFFSET:METADATA]...
 *
 * One source for every release from 0.9.0.1 on.
 */
public final class OffsetsClient {
    public static void main(String[] args) throws ReflectiveOperationException {
        String verb = args[0];
        String topic = args[3];
        Map<TopicPartition, OffsetAndMetadata> commits = new HashMap<>();
        for (String text : Arrays.copyOfRange(args, 4, args.length)) {
            String[] part = text.split(":", 3);
            commits.put(new TopicPartition(topic, Integer.parseInt(part[0])),
                new OffsetAndMetadata(Long.parseLong(part[1]), part[2]));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(args[1], args[2])) {
            switch (verb) {
                case "commit":
                    consumer.assign(new ArrayList<>(commits.keySet()));
                    consumer.commitSync(commits);
                    System.out.println("{}");
                    break;
                case "fetch":
                    System.out.println(fetch(consumer, topic));
                    break;
                case "poll":
                    System.out.println(poll(consumer, topic));
                    break;
                case "unknown":
                    unknown(consumer, commits);
                    break;
                default:
                    throw new IllegalArgumentException(verb);
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String group) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        config.put("fetch.max.wait.ms", "100");
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return new KafkaConsumer<>(config);
    }

    private static String fetch(KafkaConsumer<byte[], byte[]> consumer, String topic) throws ReflectiveOperationException {
        List<TopicPartition> partitions = Arrays.asList(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        consumer.assign(partitions);
        StringBuilder out = new StringBuilder();
        for (TopicPartition partition : partitions) {
            OffsetAndMetadata found = committed(consumer, partition);
            if (found != null) {
                out.append(out.length() == 0 ? "" : ", ").append('"').append(partition.partition()).append("\": [")
                    .append(found.offset()).append(", ").append(quoted(found.metadata())).append(']');
            }
        }
        return "{" + out + "}";
    }

    /** 2.4 brought the method for a set of partitions, 4.0 took the one for a single partition away. */
    private static OffsetAndMetadata committed(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition)
            throws ReflectiveOperationException {
        try {
            Object all = KafkaConsumer.class.getMethod("committed", Set.class).invoke(consumer, Collections.singleton(partition));
            return (OffsetAndMetadata) ((Map<?, ?>) all).get(partition);
        } catch (NoSuchMethodException e) {
            return (OffsetAndMetadata) KafkaConsumer.class.getMethod("committed", TopicPartition.class).invoke(consumer, partition);
        }
    }

    /**
     * From 2.0 on commitSync tries again until it times out, so the commit is asynchronous. The coordinator must be known
     * before it, and the answer to what is asked after it comes after its own; old releases run the callback at once
     * then, newer ones in the next commitSync, which here has nothing to commit.
     */
    private static void unknown(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> commits)
            throws ReflectiveOperationException {
        TopicPartition partition = commits.keySet().iterator().next();
        committed(consumer, partition);
        consumer.commitAsync(commits, (offsets, e) -> {
            Throwable cause = e;
            while (cause != null && cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println(cause == null ? "{\"error\": null}" : "{\"error\": " + quoted(cause.getClass().getSimpleName())
                + ", \"message\": " + quoted(cause.getMessage()) + "}");
        });
        committed(consumer, partition);
        consumer.commitSync(Collections.emptyMap());
    }

    private static String poll(KafkaConsumer<byte[], byte[]> consumer, String topic) throws ReflectiveOperationException {
        List<TopicPartition> partitions = Arrays.asList(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        consumer.assign(partitions);
        String positions = "{\"0\": " + consumer.position(partitions.get(0)) + ", \"1\": " + consumer.position(partitions.get(1)) + "}";
        if (!pollOnce(consumer, 300).isEmpty()) {
            throw new IllegalStateException("records in an empty topic");
        }
        return positions;
    }

    /** 2.0 brought the method that takes a Duration, 4.0 took the one for milliseconds away. */
    private static ConsumerRecords<?, ?> pollOnce(KafkaConsumer<byte[], byte[]> consumer, long ms)
            throws ReflectiveOperationException {
        try {
            return (ConsumerRecords<?, ?>) KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(ms));
        } catch (NoSuchMethodException e) {
            return (ConsumerRecords<?, ?>) KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, ms);
        }
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
