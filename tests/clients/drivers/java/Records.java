import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes numbered records. */
final class Records {
    private Records() {
    }

    static List<RecordMetadata> send(Run run, int count, int partitions, boolean isIdempotent) throws Exception {
        Properties config = Security.settings(run.bootstrap);
        config.put("acks", "all");
        config.put("enable.idempotence", String.valueOf(isIdempotent));
        config.put("key.serializer", StringSerializer.class.getName());
        config.put("value.serializer", StringSerializer.class.getName());
        List<RecordMetadata> acks = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                sent.add(producer.send(new ProducerRecord<>(run.name, n % partitions, String.valueOf(n), "value " + n)));
            }
            for (Future<RecordMetadata> ack : sent) {
                acks.add(ack.get(Reader.LIMIT_MS, TimeUnit.MILLISECONDS));
            }
        }
        return acks;
    }

    static void sendTen(Run run) throws Exception {
        send(run, 10, 1, false);
    }
}
