import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A typical consumer with kafka-clients; AUTO_OFFSET_RESET is the value of auto.offset.reset. */
public final class ResetConsumer {
    private ResetConsumer() {}

    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", System.getenv("KAFKA_BOOTSTRAP_SERVERS"),
                "group.id", System.getenv("KPROTO_GROUP"),
                "auto.offset.reset", System.getenv("AUTO_OFFSET_RESET"));
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(System.getenv("KPROTO_TOPIC")));
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.partition() + " " + record.offset());
                }
            }
        }
    }
}
