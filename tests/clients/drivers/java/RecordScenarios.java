import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.RecordMetadata;

/** What is written and read. */
final class RecordScenarios {
    private RecordScenarios() {
    }

    static void produce100(Run run) throws Exception {
        List<RecordMetadata> acks = Records.send(run, 100, 2, false);
        run.tell("acknowledged", acks.size());
        run.tell("last", Arrays.asList(last(acks, 0), last(acks, 1)));
        try (Reader reader = Reader.assigned(run, null, 2)) {
            List<ConsumerRecord<String, String>> records = reader.take(100);
            run.tell("read", Arrays.asList(Reader.shown(of(records, 0)), Reader.shown(of(records, 1))));
        }
    }

    static void idempotentProduce(Run run) throws Exception {
        try {
            ProducerConfig.class.getField("ENABLE_IDEMPOTENCE_CONFIG");
        } catch (NoSuchFieldException notInThisRelease) {
            throw new Unsupported("its producer is not idempotent");
        }
        List<RecordMetadata> acks = Records.send(run, 100, 1, true);
        run.tell("acknowledged", acks.size());
        run.tell("last", last(acks, 0));
        try (Reader reader = Reader.assigned(run, null, 1)) {
            run.tell("read", Reader.shown(reader.take(100)));
        }
    }

    private static long last(List<RecordMetadata> acks, int partition) {
        return acks.stream().filter(ack -> ack.partition() == partition).mapToLong(RecordMetadata::offset).max().orElse(-1);
    }

    private static List<ConsumerRecord<String, String>> of(List<ConsumerRecord<String, String>> records, int partition) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>(records);
        found.removeIf(record -> record.partition() != partition);
        return found;
    }

    static void consumeAndCommit(Run run) throws Exception {
        Records.sendTen(run);
        List<ConsumerRecord<String, String>> read = new ArrayList<>();
        List<Long> committed = new ArrayList<>();
        try (Reader reader = Reader.subscribed(run)) {
            for (int half = 0; half < 2; half++) {
                read.addAll(reader.take(5));
                reader.commit(read.get(read.size() - 1).offset() + 1);
                committed.add(reader.committed().offset());
            }
        }
        run.tell("read", Reader.shown(read));
        run.tell("committed", committed);
    }

    static void restartAndContinue(Run run) throws Exception {
        Records.sendTen(run);
        try (Reader reader = Reader.subscribed(run)) {
            run.tell("first", Reader.shown(reader.take(4)));
            reader.commit(4);
        }
        try (Reader reader = Reader.subscribed(run)) {
            run.tell("second", Reader.shown(reader.take(6)));
        }
    }

    static void rewind(Run run) throws Exception {
        Records.sendTen(run);
        try (Reader reader = Reader.assigned(run, 1)) {
            reader.take(10);
            reader.commit(10);
            reader.seek(3);
            run.tell("after_seek", Reader.shown(reader.take(1)).get(0));
            reader.commit(2);
            run.tell("committed", reader.committed().offset());
        }
        try (Reader reader = Reader.subscribed(run)) {
            run.tell("after_commit", Reader.shown(reader.take(1)).get(0));
        }
    }

    static void lag(Run run) throws Exception {
        Records.sendTen(run);
        try (Reader reader = Reader.assigned(run, 1)) {
            reader.commit(4);
            long end = Calls.end(reader.consumer, reader.partitions.get(0));
            long committed = reader.committed().offset();
            run.tell("beginning", Calls.beginning(reader.consumer, reader.partitions.get(0)));
            run.tell("end", end);
            run.tell("committed", committed);
            run.tell("lag", end - committed);
        }
    }
}
