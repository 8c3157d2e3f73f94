"""The Kafka releases that kproto emulates: the API versions of each (`kafka_version`), its features, and the base class
of the switches for what it does differently (`release`)."""
