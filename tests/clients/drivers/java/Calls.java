import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The consumer's methods whose signature is not the same in all releases. */
final class Calls {
    private Calls() {
    }

    /** 2.0 brought the Duration, 4.0 took the number away. */
    @SuppressWarnings("unchecked")
    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer, long ms) throws Exception {
        Method newer = method("poll", Duration.class);
        return (ConsumerRecords<String, String>) (newer != null
            ? on(consumer, newer, Duration.ofMillis(ms))
            : on(consumer, method("poll", long.class), ms));
    }

    /** Null where nothing is committed. 2.4 brought the set, 4.0 took the single partition away. */
    static OffsetAndMetadata committed(KafkaConsumer<?, ?> consumer, TopicPartition partition) throws Exception {
        Method newer = method("committed", Set.class);
        return (OffsetAndMetadata) (newer != null
            ? ((Map<?, ?>) on(consumer, newer, Collections.singleton(partition))).get(partition)
            : on(consumer, method("committed", TopicPartition.class), partition));
    }

    static long beginning(KafkaConsumer<?, ?> consumer, TopicPartition partition) throws Exception {
        return edge(consumer, partition, "beginningOffsets", "seekToBeginning");
    }

    static long end(KafkaConsumer<?, ?> consumer, TopicPartition partition) throws Exception {
        return edge(consumer, partition, "endOffsets", "seekToEnd");
    }

    /** 0.10.1 brought the calls that tell the offsets; before, one went there and asked where one is. */
    private static long edge(KafkaConsumer<?, ?> consumer, TopicPartition partition, String asks, String goes)
            throws Exception {
        Method newer = method(asks, Collection.class);
        if (newer != null) {
            return (Long) ((Map<?, ?>) on(consumer, newer, Collections.singleton(partition))).get(partition);
        }
        on(consumer, method(goes, TopicPartition[].class), (Object) new TopicPartition[] {partition});
        return consumer.position(partition);
    }

    private static Method method(String name, Class<?> parameter) {
        try {
            return KafkaConsumer.class.getMethod(name, parameter);
        } catch (NoSuchMethodException notInThisRelease) {
            return null;
        }
    }

    private static Object on(KafkaConsumer<?, ?> consumer, Method method, Object argument) throws Exception {
        try {
            return method.invoke(consumer, argument);
        } catch (InvocationTargetException failed) {
            throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
        }
    }
}
