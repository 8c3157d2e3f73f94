import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.RecordMetadata;

/** The scenarios of records. */
final class RecordScenarios {
    private RecordScenarios() {
    }

    static void produce100(Run run) throws Exception {
        List<RecordMetadata> acks = Records.send(run, 100, 2, false);
        run.report("acknowledged", acks.size());
        run.report("last", Arrays.asList(last(acks, 0), last(acks, 1)));
        try (Reader reader = Reader.assigned(run, null, 2)) {
            List<ConsumerRecord<String, String>> records = reader.take(100);
            run.report("read", Arrays.asList(Reader.format(of(records, 0)), Reader.format(of(records, 1))));
        }
    }

    static void idempotentProduce(Run run) throws Exception {
        try {
            ProducerConfig.class.getField("ENABLE_IDEMPOTENCE_CONFIG");
        } catch (NoSuchFieldException notInThisRelease) {
            throw new Unsupported("its producer is not idempotent");
        }
        List<RecordMetadata> acks = Records.send(run, 100, 1, true);
        run.report("acknowledged", acks.size());
        run.report("last", last(acks, 0));
        try (Reader reader = Reader.assigned(run, null, 1)) {
            run.report("read", Reader.format(reader.take(100)));
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
        run.report("read", Reader.format(read));
        run.report("committed", committed);
    }

    static void restartAndContinue(Run run) throws Exception {
        Records.sendTen(run);
        try (Reader reader = Reader.subscribed(run)) {
            run.report("first", Reader.format(reader.take(4)));
            reader.commit(4);
        }
        try (Reader reader = Reader.subscribed(run)) {
            run.report("second", Reader.format(reader.take(6)));
        }
    }

    static void rewind(Run run) throws Exception {
        Records.sendTen(run);
        try (Reader reader = Reader.assigned(run, 1)) {
            reader.take(10);
            reader.commit(10);
            reader.seek(3);
            run.report("after_seek", Reader.format(reader.take(1)).get(0));
            reader.commit(2);
            run.report("committed", reader.committed().offset());
        }
        try (Reader reader = Reader.subscribed(run)) {
            run.report("after_commit", Reader.format(reader.take(1)).get(0));
        }
    }

    static void lag(Run run) throws Exception {
        Records.sendTen(run);
        try (Reader reader = Reader.assigned(run, 1)) {
            reader.commit(4);
            long end = Calls.end(reader.consumer, reader.partitions.get(0));
            long committed = reader.committed().offset();
            run.report("beginning", Calls.beginning(reader.consumer, reader.partitions.get(0)));
            run.report("end", end);
            run.report("committed", committed);
            run.report("lag", end - committed);
        }
    }
}
