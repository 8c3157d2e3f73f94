import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * The commands of records_programs.py with kafka-clients: COMMAND BOOTSTRAP TOPIC COMPRESSION COUNT.
 *
 * One source for every release from 0.9.0.1 on.
 */
public final class RecordsClient {
    private static final String PACKAGE = "org.apache.kafka.common.serialization.ByteArray";

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[4]);
        System.out.println(args[0].equals("produce") ? produce(args, count) : consume(args, count));
    }

    private static String produce(String[] args, int count) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("compression.type", args[3]);
        settings.put("acks", "all");
        settings.put("key.serializer", PACKAGE + "Serializer");
        settings.put("value.serializer", PACKAGE + "Serializer");
        long last = 0;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                sent.add(producer.send(new ProducerRecord<>(args[2], n % 2, bytes("" + n), bytes("value " + n))));
            }
            for (Future<RecordMetadata> one : sent) {
                last = Math.max(last, one.get().offset());
            }
        }
        return "{\"last\": " + last + "}";
    }

    private static String consume(String[] args, int count) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("group.id", "unused");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", PACKAGE + "Deserializer");
        settings.put("value.deserializer", PACKAGE + "Deserializer");
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> partitions =
                Arrays.asList(new TopicPartition(args[2], 0), new TopicPartition(args[2], 1));
            on(consumer, "assign", partitions);
            long limit = System.nanoTime() + 20_000_000_000L;
            while (found.size() < count && System.nanoTime() < limit) {
                for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) {
                    found.add(String.format("[\"%d:%d\", \"%s\", \"%s\"]", record.partition(), record.offset(),
                        text(record.key()), text(record.value())));
                }
            }
        }
        Collections.sort(found);
        return found.toString();
    }

    /** Calls a method that takes a List in 0.9 and a Collection later. */
    private static void on(KafkaConsumer<?, ?> consumer, String name, List<TopicPartition> partitions)
            throws ReflectiveOperationException {
        Method method;
        try {
            method = KafkaConsumer.class.getMethod(name, Collection.class);
        } catch (NoSuchMethodException old) {
            method = KafkaConsumer.class.getMethod(name, List.class);
        }
        method.invoke(consumer, partitions);
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer)
            throws ReflectiveOperationException {
        try {
            return (ConsumerRecords<byte[], byte[]>)
                KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(500));
        } catch (NoSuchMethodException old) {
            return (ConsumerRecords<byte[], byte[]>)
                KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 500L);
        } catch (InvocationTargetException failure) {
            throw new IllegalStateException(failure.getCause());
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
