import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;

/**
 * Copies the records of one topic to another, each in a transaction, with kafka-clients: BOOTSTRAP [GROUP_PROTOCOL].
 *
 * Transactions of records with an odd number are aborted. Prints the records that a read_committed consumer finds, the
 * committed offset, and whether a second producer has fenced the first one.
 */
public final class TransactionsClient {
    private static final String STRINGS = "org.apache.kafka.common.serialization.String";
    private static final TopicPartition SOURCE = new TopicPartition("source", 0);
    private static final TopicPartition TARGET = new TopicPartition("target", 0);
    private static final int COUNT = 6;

    public static void main(String[] args) throws Exception {
        try (KafkaProducer<String, String> plain = producer(args[0], null)) {
            for (int n = 0; n < COUNT; n++) {
                plain.send(new ProducerRecord<>("source", 0, "k", "" + n)).get();
            }
        }
        KafkaProducer<String, String> first = producer(args[0], "copier");
        first.initTransactions();
        try (KafkaConsumer<String, String> consumer = consumer(args)) {
            consumer.subscribe(Collections.singletonList("source"));
            for (ConsumerRecord<String, String> record : read(consumer, COUNT)) {
                first.beginTransaction();
                first.send(new ProducerRecord<>("target", 0, "k", record.value())).get();
                first.sendOffsetsToTransaction(
                        Map.of(SOURCE, new OffsetAndMetadata(record.offset() + 1)), consumer.groupMetadata());
                if (record.offset() % 2 == 0) {
                    first.commitTransaction();
                } else {
                    first.abortTransaction();
                }
            }
        }
        boolean fenced = false;
        first.beginTransaction();
        first.send(new ProducerRecord<>("target", 0, "k", "fenced")).get();
        try (KafkaProducer<String, String> second = producer(args[0], "copier")) {
            second.initTransactions();
            try {
                first.commitTransaction();
            } catch (ProducerFencedException error) {
                fenced = true;
            }
            second.beginTransaction();
            second.send(new ProducerRecord<>("target", 0, "k", "last")).get();
            second.commitTransaction();
        }
        first.close(Duration.ZERO);
        List<String> values = new ArrayList<>();
        long offset;
        try (KafkaConsumer<String, String> consumer = consumer(args)) {
            consumer.assign(Collections.singletonList(TARGET));
            consumer.seekToBeginning(Collections.singletonList(TARGET));
            for (ConsumerRecord<String, String> record : read(consumer, COUNT / 2 + 1)) {
                values.add('"' + record.value() + '"');
            }
            offset = consumer.committed(Collections.singleton(SOURCE)).get(SOURCE).offset();
        }
        System.out.println("{\"values\": " + values + ", \"offset\": " + offset + ", \"fenced\": " + fenced + "}");
    }

    private static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long limit = System.currentTimeMillis() + 20_000;
        while (found.size() < count && System.currentTimeMillis() < limit) {
            consumer.poll(Duration.ofMillis(100)).forEach(found::add);
        }
        return found;
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String transactionalId) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.serializer", STRINGS + "Serializer");
        settings.put("value.serializer", STRINGS + "Serializer");
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(settings);
    }

    private static KafkaConsumer<String, String> consumer(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", "copiers");
        if (args.length > 1) {
            settings.put("group.protocol", args[1]);
        }
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", STRINGS + "Deserializer");
        settings.put("value.deserializer", STRINGS + "Deserializer");
        return new KafkaConsumer<>(settings);
    }
}
