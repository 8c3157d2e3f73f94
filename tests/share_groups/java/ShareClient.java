import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Reads a topic with two members of a share group, with kafka-clients: BOOTSTRAP.
 *
 * The first member releases records with an odd number at their first delivery and rejects the last one. Prints how
 * often each record was delivered when it was done with, and what the second member gets of the records that the first
 * one has acquired when it closes.
 */
public final class ShareClient {
    private static final String STRINGS = "org.apache.kafka.common.serialization.String";
    private static final int COUNT = 10;

    public static void main(String[] args) throws Exception {
        Map<String, Integer> done = new TreeMap<>();
        Map<String, Integer> second = new TreeMap<>();
        try (KafkaProducer<String, String> producer = producer(args[0])) {
            try (KafkaShareConsumer<String, String> consumer = consumer(args[0])) {
                consumer.subscribe(Collections.singletonList("t"));
                long limit = System.currentTimeMillis() + 30_000;
                boolean begun = false;
                while (!begun && System.currentTimeMillis() < limit) {
                    producer.send(new ProducerRecord<>("t", 0, "k", "begin")).get();
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                        consumer.acknowledge(record);
                        begun = true;
                    }
                }
                for (int n = 0; n < COUNT; n++) {
                    producer.send(new ProducerRecord<>("t", 0, "k", "" + n)).get();
                }
                while (done.size() < COUNT && System.currentTimeMillis() < limit) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                        acknowledge(consumer, record, done);
                    }
                    consumer.commitSync();
                }
                producer.send(new ProducerRecord<>("t", 0, "k", "last")).get();
                boolean acquired = false;
                while (!acquired && System.currentTimeMillis() < limit) {
                    acquired = !consumer.poll(Duration.ofMillis(500)).isEmpty();
                }
                try (KafkaShareConsumer<String, String> other = consumer(args[0])) {
                    other.subscribe(Collections.singletonList("t"));
                    other.poll(Duration.ofMillis(500));
                    consumer.close(Duration.ofSeconds(5));
                    while (second.isEmpty() && System.currentTimeMillis() < limit) {
                        for (ConsumerRecord<String, String> record : other.poll(Duration.ofMillis(500))) {
                            second.put(record.value(), (int) record.deliveryCount().get());
                            other.acknowledge(record);
                        }
                    }
                }
            }
        }
        System.out.println("{\"done\": " + json(done) + ", \"second\": " + json(second) + "}");
    }

    private static void acknowledge(
            KafkaShareConsumer<String, String> consumer,
            ConsumerRecord<String, String> record,
            Map<String, Integer> done) {
        int count = record.deliveryCount().get();
        if (record.value().equals("begin")) {
            consumer.acknowledge(record);
            return;
        }
        int number = Integer.parseInt(record.value());
        if (number % 2 == 1 && count == 1) {
            consumer.acknowledge(record, AcknowledgeType.RELEASE);
            return;
        }
        consumer.acknowledge(record, number == COUNT - 2 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
        done.put(record.value(), count);
    }

    private static String json(Map<String, Integer> values) {
        StringBuilder text = new StringBuilder();
        values.forEach((key, value) -> text.append(text.length() == 0 ? "" : ", ").append("\"" + key + "\": " + value));
        return "{" + text + "}";
    }

    private static KafkaProducer<String, String> producer(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("key.serializer", STRINGS + "Serializer");
        config.put("value.serializer", STRINGS + "Serializer");
        return new KafkaProducer<>(config);
    }

    private static KafkaShareConsumer<String, String> consumer(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", "g");
        config.put("share.acknowledgement.mode", "explicit");
        config.put("key.deserializer", STRINGS + "Deserializer");
        config.put("value.deserializer", STRINGS + "Deserializer");
        return new KafkaShareConsumer<>(config);
    }
}
