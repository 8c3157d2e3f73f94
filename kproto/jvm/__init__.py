"""What Java's and Scala's own classes do to numbers, text and order, as clients and files of Kafka show it."""
