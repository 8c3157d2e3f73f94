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

/** A consumer of the group that polls in its own thread. */
final class Member extends Thread implements ConsumerRebalanceListener, AutoCloseable {
    private final KafkaConsumer<String, String> consumer;
    private final TreeSet<Integer> partitions = new TreeSet<>();
    private List<Integer> revoked = new ArrayList<>();
    private int rebalances;
    private Exception failed;
    private volatile boolean isClosing;

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
            while (!isClosing) {
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
    public synchronized void onPartitionsRevoked(Collection<TopicPartition> lost) {
        revoked = sorted(lost);
        partitions.removeAll(revoked);
        notifyAll();
    }

    @Override
    public synchronized void onPartitionsAssigned(Collection<TopicPartition> added) {
        rebalances++;
        partitions.addAll(sorted(added));
        notifyAll();
    }

    private static List<Integer> sorted(Collection<TopicPartition> partitions) {
        List<Integer> numbers = new ArrayList<>();
        partitions.forEach(partition -> numbers.add(partition.partition()));
        Collections.sort(numbers);
        return numbers;
    }

    /** Returns the assigned partitions once there are this many. */
    synchronized List<Integer> await(int count) throws Exception {
        long limit = System.currentTimeMillis() + Reader.LIMIT_MS;
        while (partitions.size() != count) {
            long left = limit - System.currentTimeMillis();
            if (failed != null) {
                throw failed;
            }
            if (left <= 0) {
                throw new TimeoutException(partitions + " assigned, not " + count + " partitions");
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

    /** Leaves the group, unless the member is static. */
    @Override
    public void close() throws InterruptedException {
        isClosing = true;
        join(Reader.LIMIT_MS);
    }
}
