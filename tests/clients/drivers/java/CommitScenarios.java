import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The scenarios of commits. */
final class CommitScenarios {
    private static final int METADATA_MAX_BYTES = 4096;

    private CommitScenarios() {
    }

    static void commitWithMetadata(Run run) throws Exception {
        try (Reader reader = Reader.assigned(run, 2)) {
            run.report("before", committed(reader));
            reader.commit(0, 42, "first: note");
            reader.commit(1, 7, "\"zweite\" Notiz - \u00fc");
        }
        try (Reader reader = Reader.assigned(run, 2)) {
            run.report("committed", committed(reader));
            reader.commit(0, 2, "new");
            run.report("replaced", committed(reader));
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
        String largest = String.join("", Collections.nCopies(METADATA_MAX_BYTES, "x"));
        try (Reader reader = Reader.assigned(run, 1)) {
            reader.commit(0, 1, largest);
            run.report("error", Run.errorOf(() -> reader.commit(0, 2, largest + "x")));
            run.report("committed", reader.committed().offset());
            run.report("length", reader.committed().metadata().length());
        }
    }

    /**
     * From 2.0 on, commitSync repeats until it times out, so the commit is asynchronous. The first committed() finds the
     * coordinator. The response to the second committed() follows the response to the commit; old releases run the
     * callback then, newer ones in the next commitSync, which has nothing to commit here.
     */
    static void unknownTopic(Run run) throws Exception {
        TopicPartition partition = new TopicPartition(run.name, 0);
        AtomicReference<Object> error = new AtomicReference<>("no response");
        try (KafkaConsumer<String, String> consumer =
                Reader.consumer(run.bootstrap, run.name, Collections.emptyMap())) {
            Calls.committed(consumer, partition);
            consumer.commitAsync(Collections.singletonMap(partition, new OffsetAndMetadata(0)),
                (offsets, failed) -> error.set(failed == null ? 0 : Run.error(failed)));
            Calls.committed(consumer, partition);
            consumer.commitSync(Collections.emptyMap());
        }
        run.report("error", error.get());
    }
}
