"""The settings of brokers and the configs of topics, by Kafka's names.

`setting_table` and `topic_config_table` list them with the history of their defaults. `settings` has the values of a
broker at its start, `dynamic_settings` those that change while it runs, `topic_configs` the configs of a topic.
"""
