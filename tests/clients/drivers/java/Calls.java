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

/** The consumer's methods whose signatures differ between releases. */
final class Calls {
    private Calls() {
    }

    /** 2.0 added the Duration, 4.0 removed the number. */
    @SuppressWarnings("unchecked")
    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer, long ms) throws Exception {
        Method newer = method("poll", Duration.class);
        return (ConsumerRecords<String, String>) (newer != null
            ? invoke(consumer, newer, Duration.ofMillis(ms))
            : invoke(consumer, method("poll", long.class), ms));
    }

    /** Returns null without a committed offset. 2.4 added the set, 4.0 removed the single partition. */
    static OffsetAndMetadata committed(KafkaConsumer<?, ?> consumer, TopicPartition partition) throws Exception {
        Method newer = method("committed", Set.class);
        return (OffsetAndMetadata) (newer != null
            ? ((Map<?, ?>) invoke(consumer, newer, Collections.singleton(partition))).get(partition)
            : invoke(consumer, method("committed", TopicPartition.class), partition));
    }

    static long beginning(KafkaConsumer<?, ?> consumer, TopicPartition partition) throws Exception {
        return edge(consumer, partition, "beginningOffsets", "seekToBeginning");
    }

    static long end(KafkaConsumer<?, ?> consumer, TopicPartition partition) throws Exception {
        return edge(consumer, partition, "endOffsets", "seekToEnd");
    }

    /** 0.10.1 added the calls that return the offsets; older releases seek and return their position. */
    private static long edge(KafkaConsumer<?, ?> consumer, TopicPartition partition, String query, String seek)
            throws Exception {
        Method newer = method(query, Collection.class);
        if (newer != null) {
            return (Long) ((Map<?, ?>) invoke(consumer, newer, Collections.singleton(partition))).get(partition);
        }
        invoke(consumer, method(seek, TopicPartition[].class), (Object) new TopicPartition[] {partition});
        return consumer.position(partition);
    }

    private static Method method(String name, Class<?> parameter) {
        try {
            return KafkaConsumer.class.getMethod(name, parameter);
        } catch (NoSuchMethodException notInThisRelease) {
            return null;
        }
    }

    private static Object invoke(KafkaConsumer<?, ?> consumer, Method method, Object argument) throws Exception {
        try {
            return method.invoke(consumer, argument);
        } catch (InvocationTargetException failed) {
            throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
        }
    }
}
