import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of the topic "in" with Kafka Streams as a streams group, exactly once: BOOTSTRAP FOLDER.
 *
 * A repartition topic is between two subtopologies, and the counts have a changelog. Writes each new count to the topic
 * "out", prints changes of its state, and runs until its standard input ends or it is killed.
 */
public final class WordCounter {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("application.id", "words");
        settings.put("bootstrap.servers", args[0]);
        settings.put("state.dir", args[1]);
        settings.put("group.protocol", "streams");
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("replication.factor", "1");
        settings.put("commit.interval.ms", "50");
        settings.put("num.stream.threads", "1");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("auto.offset.reset", "earliest");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("in", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("out", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close();
    }
}
