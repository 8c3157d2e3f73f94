"""The cluster: nodes, topics, partitions and their leaders; decisions only, without sockets and clock.

`cluster` has nodes and topics, `topics` their values, `shared_state` the rest of what all nodes know. `rules`,
`zookeeper_rules` and `kraft_rules` decide whether a topic can be created, `placement` on which nodes, `auto_creation`
what Metadata does with missing topics. `topic_config_changes`, `broker_config_changes` and `group_config_changes` are
the rules of AlterConfigs, `feature_rules` those of UpdateFeatures.
"""
