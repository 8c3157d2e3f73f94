"""The cluster: nodes, topics, partitions and their leaders; decisions only, without sockets and clock.

`cluster` has the state, `topics` its values. `rules`, `zookeeper_rules` and `kraft_rules` decide whether a topic can be
created, `placement` on which nodes, `auto_creation` what Metadata does with missing topics. `topic_config_changes` and
`broker_config_changes` are the rules of AlterConfigs.
"""
