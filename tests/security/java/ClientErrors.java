import java.io.File;
import java.io.FileReader;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Which exception a producer gets from a secured listener: for each file of settings in a folder, a line of JSON. */
public class ClientErrors {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";

    public static void main(String[] arguments) throws Exception {
        File[] files = new File(arguments[0]).listFiles();
        Thread[] threads = new Thread[files.length];
        for (int index = 0; index < files.length; index++) {
            File file = files[index];
            threads[index] = new Thread(() -> {
                String line = "[\"" + file.getName() + "\", \"" + classOf(file) + "\"]";
                synchronized (ClientErrors.class) {
                    System.out.println(line);
                }
            });
            threads[index].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static String classOf(File file) {
        Properties settings = new Properties();
        try (FileReader reader = new FileReader(file)) {
            settings.load(reader);
        } catch (java.io.IOException error) {
            throw new RuntimeException(error);
        }
        settings.put("key.serializer", SERIALIZER);
        settings.put("value.serializer", SERIALIZER);
        settings.put("max.block.ms", "15000");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>("orders", "v")).get(30, TimeUnit.SECONDS);
            return "ok";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        } catch (Exception error) {
            return (error.getCause() == null ? error : error.getCause()).getClass().getSimpleName();
        }
    }
}
