import java.io.FileReader;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Writes a record and reads it, with the settings in a file; prints its value, or the class of the error. */
public class SecuredClient {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileReader reader = new FileReader(arguments[0])) {
            settings.load(reader);
        }
        String serialization = "org.apache.kafka.common.serialization.String";
        settings.put("key.serializer", serialization + "Serializer");
        settings.put("value.serializer", serialization + "Serializer");
        settings.put("key.deserializer", serialization + "Deserializer");
        settings.put("value.deserializer", serialization + "Deserializer");
        settings.put("group.id", "g");
        settings.put("auto.offset.reset", "earliest");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>("t", "v")).get(20, TimeUnit.SECONDS);
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            System.out.println(cause.getClass().getSimpleName());
            return;
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(Collections.singletonList("t"));
            ConsumerRecords<String, String> records = ConsumerRecords.empty();
            while (records.isEmpty()) {
                records = poll(consumer);
            }
            consumer.commitSync();
            System.out.println(records.iterator().next().value());
        }
    }

    /** Calls poll(Duration), or poll(long) of clients before 2.0. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            Object time = duration.getMethod("ofMillis", long.class).invoke(null, 100L);
            Object records = KafkaConsumer.class.getMethod("poll", duration).invoke(consumer, time);
            return (ConsumerRecords<String, String>) records;
        } catch (NoSuchMethodException error) {
            Object records = KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 100L);
            return (ConsumerRecords<String, String>) records;
        }
    }
}
