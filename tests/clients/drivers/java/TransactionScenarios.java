import java.lang.reflect.Method;
import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** The scenarios of transactions, from 0.11 on. */
final class TransactionScenarios {
    private static final int COUNT = 6;
    private static final int TARGET = 1;

    private TransactionScenarios() {
    }

    static void exactlyOnce(Run run) throws Exception {
        Records.send(run, COUNT, 1, false);
        TopicPartition source = new TopicPartition(run.name, 0);
        try (KafkaProducer<String, String> producer = producer(run, "60000"); Reader reader = Reader.committed(run, run.name, 0)) {
            producer.initTransactions();
            for (int n = 0; n < COUNT; n++) {
                if (n % 2 == 1) {
                    copy(producer, reader, source);
                    producer.abortTransaction();
                    reader.seek(n);
                }
                copy(producer, reader, source);
                producer.commitTransaction();
            }
            run.report("committed", reader.committed().offset());
        }
        try (Reader reader = Reader.committed(run, null, TARGET)) {
            run.report("copied", Reader.format(reader.take(COUNT)));
        }
    }

    private static void copy(KafkaProducer<String, String> producer, Reader reader, TopicPartition source)
            throws Exception {
        ConsumerRecord<String, String> record = reader.take(1).get(0);
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(source.topic(), TARGET, record.key(), record.value()));
        sendOffsets(producer, Collections.singletonMap(source, new OffsetAndMetadata(record.offset() + 1)), reader.consumer,
            source.topic());
    }

    /** 2.5 added the metadata of the group, 4.0 removed the name of the group. */
    private static void sendOffsets(KafkaProducer<String, String> producer, Map<TopicPartition, OffsetAndMetadata> offsets,
            KafkaConsumer<String, String> consumer, String group) throws Exception {
        for (Method method : KafkaConsumer.class.getMethods()) {
            if (method.getName().equals("groupMetadata")) {
                KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, method.getReturnType())
                    .invoke(producer, offsets, method.invoke(consumer));
                return;
            }
        }
        KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, String.class).invoke(producer, offsets, group);
    }

    static void fencedProducer(Run run) throws Exception {
        KafkaProducer<String, String> first = begun(run, "60000", 0);
        try (KafkaProducer<String, String> second = begun(run, "60000", 1)) {
            run.report("error", Run.errorOf(first::commitTransaction));
            second.commitTransaction();
        }
        report(run);
        first.close();
    }

    static void transactionTimeout(Run run) throws Exception {
        try (KafkaProducer<String, String> producer = begun(run, "1000", 0)) {
            try (KafkaProducer<String, String> plain = new KafkaProducer<>(settings(run))) {
                send(plain, run, 1);
            }
            report(run);
            run.report("error", Run.errorOf(producer::commitTransaction));
        }
    }

    /** Returns a producer with a transaction that has one record. */
    private static KafkaProducer<String, String> begun(Run run, String timeoutMs, int number) throws Exception {
        KafkaProducer<String, String> producer = producer(run, timeoutMs);
        producer.initTransactions();
        producer.beginTransaction();
        send(producer, run, number);
        return producer;
    }

    private static void send(KafkaProducer<String, String> producer, Run run, int number) throws Exception {
        producer.send(new ProducerRecord<>(run.name, 0, String.valueOf(number), "value " + number))
            .get(Reader.LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** Reports the first committed record, once there is one. */
    private static void report(Run run) throws Exception {
        try (Reader reader = Reader.committed(run, null, 0)) {
            run.report("read", Reader.format(reader.take(1)));
        }
    }

    private static KafkaProducer<String, String> producer(Run run, String timeoutMs) {
        Properties config = settings(run);
        config.put("transactional.id", run.name);
        config.put("transaction.timeout.ms", timeoutMs);
        return new KafkaProducer<>(config);
    }

    private static Properties settings(Run run) {
        Properties config = Security.settings(run.bootstrap);
        config.put("key.serializer", StringSerializer.class.getName());
        config.put("value.serializer", StringSerializer.class.getName());
        return config;
    }
}
