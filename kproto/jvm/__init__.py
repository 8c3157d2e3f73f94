"""What the classes of Java, Scala and Kafka do to numbers, text, UUIDs and order, as clients and files show it."""
