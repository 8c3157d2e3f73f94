import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer, with or without a group, that returns records in the requested number. */
final class Reader implements AutoCloseable {
    static final long LIMIT_MS = 20_000;
    final KafkaConsumer<String, String> consumer;
    final List<TopicPartition> partitions = new ArrayList<>();
    private final Deque<ConsumerRecord<String, String>> found = new ArrayDeque<>();

    private Reader(KafkaConsumer<String, String> consumer) {
        this.consumer = consumer;
    }

    static Reader subscribed(Run run) {
        Reader reader = new Reader(consumer(run.bootstrap, run.name, Collections.emptyMap()));
        reader.consumer.subscribe(Collections.singletonList(run.name));
        reader.partitions.add(new TopicPartition(run.name, 0));
        return reader;
    }

    static Reader assigned(Run run, int count) {
        return assigned(run, run.name, count);
    }

    /** A null group: no group. */
    static Reader assigned(Run run, String group, int count) {
        Reader reader = new Reader(consumer(run.bootstrap, group, Collections.emptyMap()));
        for (int partition = 0; partition < count; partition++) {
            reader.partitions.add(new TopicPartition(run.name, partition));
        }
        reader.consumer.assign(reader.partitions);
        return reader;
    }

    /** Reads one partition, with isolation.level read_committed. */
    static Reader committed(Run run, String group, int partition) {
        Map<String, String> committed = Collections.singletonMap("isolation.level", "read_committed");
        Reader reader = new Reader(consumer(run.bootstrap, group, committed));
        reader.partitions.add(new TopicPartition(run.name, partition));
        reader.consumer.assign(reader.partitions);
        return reader;
    }

    static KafkaConsumer<String, String> consumer(String bootstrap, String group, Map<String, String> more) {
        Properties config = Security.settings(bootstrap);
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        config.put("session.timeout.ms", "6000");
        config.put("heartbeat.interval.ms", "100");
        config.put("fetch.max.wait.ms", "50");
        config.put("metadata.max.age.ms", "500");
        config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        config.put("key.deserializer", StringDeserializer.class.getName());
        config.put("value.deserializer", StringDeserializer.class.getName());
        if (group != null) {
            config.put("group.id", group);
        }
        config.putAll(more);
        return new KafkaConsumer<>(config);
    }

    List<ConsumerRecord<String, String>> take(int count) throws Exception {
        long limit = System.nanoTime() + LIMIT_MS * 1_000_000;
        while (found.size() < count) {
            if (System.nanoTime() > limit) {
                throw new TimeoutException(found.size() + " records, not " + count);
            }
            for (ConsumerRecord<String, String> record : Calls.poll(consumer, 500)) {
                found.add(record);
            }
        }
        List<ConsumerRecord<String, String>> taken = new ArrayList<>();
        while (taken.size() < count) {
            taken.add(found.remove());
        }
        return taken;
    }

    void seek(long offset) {
        found.clear();
        consumer.seek(partitions.get(0), offset);
    }

    void commit(int partition, long offset, String metadata) {
        consumer.commitSync(Collections.singletonMap(partitions.get(partition), new OffsetAndMetadata(offset, metadata)));
    }

    void commit(long offset) {
        commit(0, offset, "");
    }

    OffsetAndMetadata committed() throws Exception {
        return Calls.committed(consumer, partitions.get(0));
    }

    static List<String> format(List<ConsumerRecord<String, String>> records) {
        List<String> formatted = new ArrayList<>();
        for (ConsumerRecord<String, String> record : records) {
            formatted.add(record.key() + "=" + record.value());
        }
        return formatted;
    }

    @Override
    public void close() {
        consumer.close();
    }
}
