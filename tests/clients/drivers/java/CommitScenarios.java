import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** What is committed, and what is refused. */
final class CommitScenarios {
    private static final int LARGEST = 4096;

    private CommitScenarios() {
    }

    static void commitWithMetadata(Run run) throws Exception {
        try (Reader reader = Reader.assigned(run, 2)) {
            run.tell("before", committed(reader));
            reader.commit(0, 42, "first: note");
            reader.commit(1, 7, "\"zweite\" Notiz - \u00fc");
        }
        try (Reader reader = Reader.assigned(run, 2)) {
            run.tell("committed", committed(reader));
            reader.commit(0, 2, "new");
            run.tell("replaced", committed(reader));
        }
    }

    private static Map<Integer, List<Object>> committed(Reader reader) throws Exception {
        Map<Integer, List<Object>> all = new TreeMap<>();
        for (TopicPartition partition : reader.partitions) {
            OffsetAndMetadata found = Calls.committed(reader.consumer, partition);
            if (found != null) {
                all.put(partition.partition(), Arrays.asList(found.offset(), found.metadata()));
            }
        }
        return all;
    }

    static void metadataTooLarge(Run run) throws Exception {
        String largest = String.join("", Collections.nCopies(LARGEST, "x"));
        try (Reader reader = Reader.assigned(run, 1)) {
            reader.commit(0, 1, largest);
            run.tell("error", Run.errorOf(() -> reader.commit(0, 2, largest + "x")));
            run.tell("committed", reader.committed().offset());
            run.tell("length", reader.committed().metadata().length());
        }
    }

    /**
     * From 2.0 on commitSync tries again until it times out, so the commit is asynchronous. The coordinator must be known
     * before it, and the answer to what is asked after it comes after its own; old releases run the callback at once
     * then, newer ones in the next commitSync, which here has nothing to commit.
     */
    static void unknownTopic(Run run) throws Exception {
        TopicPartition partition = new TopicPartition(run.name, 0);
        AtomicReference<Object> error = new AtomicReference<>("no answer");
        try (KafkaConsumer<String, String> consumer =
                Reader.consumer(run.bootstrap, run.name, Collections.emptyMap())) {
            Calls.committed(consumer, partition);
            consumer.commitAsync(Collections.singletonMap(partition, new OffsetAndMetadata(0)),
                (offsets, failed) -> error.set(failed == null ? 0 : Run.error(failed)));
            Calls.committed(consumer, partition);
            consumer.commitSync(Collections.emptyMap());
        }
        run.tell("error", error.get());
    }
}
