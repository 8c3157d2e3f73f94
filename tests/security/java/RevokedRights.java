import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Works with the rights of the moment, and again when a line comes in: for each line "CASE FILE", the file has settings.
 * Prints "ready" between both, and the class of the error at the end.
 */
public class RevokedRights {
    private static final String TOPIC = "orders";
    private static final long LIMIT_MS = 30_000;
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] arguments) throws Exception {
        String line;
        while ((line = INPUT.readLine()) != null) {
            String[] words = line.split(" ");
            Properties settings = new Properties();
            try (FileReader reader = new FileReader(words[1])) {
                settings.load(reader);
            }
            String serialization = "org.apache.kafka.common.serialization.String";
            settings.put("key.serializer", serialization + "Serializer");
            settings.put("value.serializer", serialization + "Serializer");
            settings.put("key.deserializer", serialization + "Deserializer");
            settings.put("value.deserializer", serialization + "Deserializer");
            switch (words[0]) {
                case "write":
                    write(settings);
                    break;
                case "transaction":
                    writeTransaction(settings);
                    break;
                default:
                    read(settings, words[0].equals("commit"));
            }
        }
    }

    private static void write(Properties settings) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            Callable<Object> send = () -> producer.send(new ProducerRecord<>(TOPIC, "v")).get(30, TimeUnit.SECONDS);
            send.call();
            ready();
            print(send);
        }
    }

    private static void writeTransaction(Properties settings) throws Exception {
        settings.put("transactional.id", "payments");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        Callable<Object> transaction = () -> {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, "v")).get(30, TimeUnit.SECONDS);
            producer.commitTransaction();
            return null;
        };
        producer.initTransactions();
        transaction.call();
        ready();
        print(transaction);
        producer.close(Duration.ZERO);
    }

    private static void read(Properties settings, boolean commits) throws Exception {
        settings.put("group.id", "readers");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("session.timeout.ms", "6000");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(Collections.singletonList(TOPIC));
        while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {
        }
        consumer.commitSync();
        ready();
        print(() -> {
            if (commits) {
                consumer.commitSync();
            }
            long end = System.currentTimeMillis() + LIMIT_MS;
            while (System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(100));
            }
            return null;
        });
        consumer.close(Duration.ZERO);
    }

    private static void ready() throws Exception {
        System.out.println("ready");
        INPUT.readLine();
    }

    private static void print(Callable<Object> action) {
        try {
            action.call();
            System.out.println("ok");
        } catch (ExecutionException error) {
            System.out.println(error.getCause().getClass().getSimpleName());
        } catch (Exception error) {
            System.out.println(error.getClass().getSimpleName());
        }
    }
}
