import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * members.py with kafka-clients: BOOTSTRAP GROUP TOPIC VERB.
 *
 * One source for every release from 0.9.0.1 on: what changed its signature is called by reflection.
 */
public final class MembersClient {
    public static void main(String[] args) throws Exception {
        String verb = args[3];
        boolean isStatic = verb.equals("static");
        Member first = new Member(args, isStatic ? "one" : null);
        Member second = new Member(args, isStatic ? "two" : null);
        first.start();
        second.start();
        String both = "[" + first.await(has -> has.size() == 2) + ", " + second.await(has -> has.size() == 2) + "]";
        int before = second.rebalances;
        first.end();
        if (isStatic) {
            Member again = new Member(args, "one");
            again.start();
            List<Integer> has = again.await(found -> !found.isEmpty());
            System.out.println("{\"both\": " + both + ", \"again\": " + has
                + ", \"rebalances\": " + (second.rebalances - before) + "}");
            again.end();
        } else {
            System.out.println("{\"both\": " + both + ", \"alone\": " + second.await(has -> has.size() == 4) + "}");
        }
        second.end();
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Method poll;
        private final Object timeout;
        private volatile boolean ends;
        private List<Integer> partitions = new ArrayList<>();
        volatile int rebalances;

        Member(String[] args, String instance) throws ReflectiveOperationException {
            setDaemon(true);
            Properties config = new Properties();
            config.put("bootstrap.servers", args[0]);
            config.put("group.id", args[1]);
            config.put("heartbeat.interval.ms", "100");
            config.put("session.timeout.ms", "6000");
            config.put("fetch.max.wait.ms", "50");
            config.put("key.deserializer", ByteArrayDeserializer.class.getName());
            config.put("value.deserializer", ByteArrayDeserializer.class.getName());
            if (args[3].equals("cooperative")) {
                config.put("partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
            }
            if (instance != null) {
                config.put("group.instance.id", instance);
            }
            consumer = new KafkaConsumer<>(config);
            Method found;
            Object length;
            try {
                found = KafkaConsumer.class.getMethod("poll", java.time.Duration.class);
                length = java.time.Duration.ofMillis(20);
            } catch (NoSuchMethodException older) {
                found = KafkaConsumer.class.getMethod("poll", long.class);
                length = 20L;
            }
            poll = found;
            timeout = length;
            try {
                KafkaConsumer.class.getMethod("subscribe", Collection.class, ConsumerRebalanceListener.class)
                    .invoke(consumer, Collections.singletonList(args[2]), this);
            } catch (NoSuchMethodException older) {
                KafkaConsumer.class.getMethod("subscribe", List.class, ConsumerRebalanceListener.class)
                    .invoke(consumer, Collections.singletonList(args[2]), this);
            }
        }

        @Override
        public void run() {
            try {
                while (!ends) {
                    poll.invoke(consumer, timeout);
                    note();
                }
                consumer.close();
            } catch (ReflectiveOperationException failed) {
                failed.printStackTrace();
                System.exit(1);
            }
        }

        private synchronized void note() {
            List<Integer> found = new ArrayList<>();
            for (TopicPartition partition : consumer.assignment()) {
                found.add(partition.partition());
            }
            Collections.sort(found);
            partitions = found;
            notifyAll();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            rebalances++;
        }

        synchronized List<Integer> await(Predicate<List<Integer>> isDone) throws InterruptedException {
            long limit = System.nanoTime() + 30_000_000_000L;
            while (!isDone.test(partitions)) {
                if (System.nanoTime() > limit) {
                    System.err.println("it has " + partitions);
                    System.exit(1);
                }
                wait(100);
            }
            return partitions;
        }

        void end() throws InterruptedException {
            ends = true;
            join();
        }
    }
}
