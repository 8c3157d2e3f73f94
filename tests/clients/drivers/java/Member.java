import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A consumer of the group that polls in a thread of its own. */
final class Member extends Thread implements ConsumerRebalanceListener, AutoCloseable {
    private final KafkaConsumer<String, String> consumer;
    private final TreeSet<Integer> partitions = new TreeSet<>();
    private List<Integer> revoked = new ArrayList<>();
    private int rebalances;
    private Exception failed;
    private volatile boolean ends;

    Member(Run run, Map<String, String> settings) {
        setDaemon(true);
        consumer = Reader.consumer(run.bootstrap, run.name, settings);
        consumer.subscribe(Collections.singletonList(run.name), this);
        start();
    }

    Member(Run run) {
        this(run, Collections.emptyMap());
    }

    @Override
    public void run() {
        try {
            while (!ends) {
                Calls.poll(consumer, 50);
            }
            consumer.close();
        } catch (Exception e) {
            note(e);
        }
    }

    private synchronized void note(Exception e) {
        failed = e;
        notifyAll();
    }

    @Override
    public synchronized void onPartitionsRevoked(Collection<TopicPartition> gone) {
        revoked = sorted(gone);
        partitions.removeAll(revoked);
        notifyAll();
    }

    @Override
    public synchronized void onPartitionsAssigned(Collection<TopicPartition> come) {
        rebalances++;
        partitions.addAll(sorted(come));
        notifyAll();
    }

    private static List<Integer> sorted(Collection<TopicPartition> partitions) {
        List<Integer> numbers = new ArrayList<>();
        partitions.forEach(partition -> numbers.add(partition.partition()));
        Collections.sort(numbers);
        return numbers;
    }

    /** Wait until it has this many partitions. */
    synchronized List<Integer> await(int count) throws Exception {
        long limit = System.currentTimeMillis() + Reader.LIMIT_MS;
        while (partitions.size() != count) {
            long left = limit - System.currentTimeMillis();
            if (failed != null) {
                throw failed;
            }
            if (left <= 0) {
                throw new TimeoutException("it has " + partitions + ", not " + count);
            }
            wait(left);
        }
        return new ArrayList<>(partitions);
    }

    synchronized List<Integer> revoked() {
        return revoked;
    }

    synchronized int rebalances() {
        return rebalances;
    }

    /** A static member does not leave the group by this. */
    @Override
    public void close() throws InterruptedException {
        ends = true;
        join(Reader.LIMIT_MS);
    }
}
