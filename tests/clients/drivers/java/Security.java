import java.util.Map;
import java.util.Properties;

/** The security of the broker, as `kproto run` gives it to its command. */
final class Security {
    private static final String[] NAMES = {
        "security.protocol", "ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password",
        "sasl.mechanism", "sasl.jaas.config",
    };

    private Security() {
    }

    /** Returns the settings of a client of this broker. */
    static Properties settings(String bootstrap) {
        Map<String, String> variables = System.getenv();
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        for (String name : NAMES) {
            String value = variables.get("KAFKA_" + name.toUpperCase(java.util.Locale.ROOT).replace('.', '_'));
            if (value != null) {
                config.put(name, value);
            }
        }
        return config;
    }
}
