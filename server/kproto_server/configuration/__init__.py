"""Settings by Kafka's own names, of brokers and of topics."""
