"""The API versions of each release line of Kafka, as the history of each API.

A step reads "line:least-greatest": `"2.0:0-4 2.1:0-6"` means versions 0 to 4 from 2.0 on, and 0 to 6 from 2.1 on. No
API was ever removed within a mode; 4.x, which has no ZooKeeper, lacks the APIs between brokers and a ZooKeeper
controller.

Source:
    fixtures/kafka-api-versions.json: ApiVersions responses of running brokers; for 0.8 and 0.9, which do not have that
    API, their source code and probes.
"""

# fmt: off
LINES: dict[str, tuple[str, ...]] = {
    "zookeeper": (
        "0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0",
        "1.0", "1.1",
        "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8",
        "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9",
    ),
    "kraft": (
        "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9",
        "4.0.0", "4.0", "4.1", "4.2", "4.3", "4.4",
    ),
}
# fmt: on
"""Release lines by mode, oldest first. 4.0.0 has an entry of its own, as 4.0.1 restored JoinGroup versions that 4.0.0
had removed."""

INTERNAL = frozenset({4, 5, 6, 7, 27, 56, 58, 67, 83, 84, 85, 86, 87})
"""Keys of the APIs between brokers and controllers. Brokers advertise them. The only one that a client sends is
WriteTxnMarkers (27), with which Admin clients abort a hanging transaction."""

ZOOKEEPER = {
    0: (  # Produce
        "0.8.0:0-0 0.9.0:0-1 0.10.0:0-2 0.11.0:0-3 1.0:0-5 2.0:0-6 2.1:0-7 2.4:0-8 2.8:0-9 3.7:0-10 3.8:0-11"
    ),
    1: (  # Fetch
        "0.8.0:0-0 0.9.0:0-1 0.10.0:0-2 0.10.1:0-3 0.11.0:0-5 1.0:0-6 1.1:0-7 2.0:0-8 2.1:0-10 2.3:0-11 "
        "2.7:0-12 3.1:0-13 3.5:0-15 3.7:0-16 3.9:0-17"
    ),
    2: (  # ListOffsets
        "0.8.0:0-0 0.10.1:0-1 0.11.0:0-2 2.0:0-3 2.1:0-4 2.2:0-5 2.8:0-6 3.0:0-7 3.5:0-8 3.9:0-9"
    ),
    3: (  # Metadata
        "0.8.0:0-0 0.10.0:0-1 0.10.1:0-2 0.11.0:0-4 1.0:0-5 2.0:0-6 2.1:0-7 2.3:0-8 2.4:0-9 2.8:0-11 3.1:0-12"
    ),
    4: "0.8.0:0-0 1.0:0-1 2.2:0-2 2.4:0-4 2.8:0-5 3.2:0-6 3.4:0-7",  # LeaderAndIsr
    5: "0.8.0:0-0 2.2:0-1 2.4:0-2 2.6:0-3 3.4:0-4",  # StopReplica
    6: "0.8.0:0-0 0.9.0:0-1 0.10.0:0-2 0.10.2:0-3 1.0:0-4 2.2:0-5 2.4:0-6 2.8:0-7 3.4:0-8",  # UpdateMetadata
    7: "0.8.0:0-0 0.9.0:0-1 0.10.0:1-1 1.0:0-1 2.2:0-2 2.4:0-3",  # ControlledShutdown
    8: "0.8.1:0-0 0.8.2:0-1 0.9.0:0-2 0.11.0:0-3 2.0:0-4 2.1:0-6 2.3:0-7 2.4:0-8 3.7:0-9",  # OffsetCommit
    9: (  # OffsetFetch
        "0.8.1:0-0 0.8.2:0-1 0.10.2:0-2 0.11.0:0-3 2.0:0-4 2.1:0-5 2.4:0-6 2.5:0-7 3.0:0-8 3.7:0-9"
    ),
    10: "0.8.2:0-0 0.11.0:0-1 2.0:0-2 2.4:0-3 3.0:0-4 3.8:0-5 3.9:0-6",  # FindCoordinator
    11: "0.9.0:0-0 0.10.1:0-1 0.11.0:0-2 2.0:0-3 2.2:0-4 2.3:0-5 2.4:0-6 2.5:0-7 3.2:0-9",  # JoinGroup
    12: "0.9.0:0-0 0.11.0:0-1 2.0:0-2 2.3:0-3 2.4:0-4",  # Heartbeat
    13: "0.9.0:0-0 0.11.0:0-1 2.0:0-2 2.4:0-4 3.2:0-5",  # LeaveGroup
    14: "0.9.0:0-0 0.11.0:0-1 2.0:0-2 2.3:0-3 2.4:0-4 2.5:0-5",  # SyncGroup
    15: "0.9.0:0-0 0.11.0:0-1 2.0:0-2 2.3:0-3 2.4:0-5",  # DescribeGroups
    16: "0.9.0:0-0 0.11.0:0-1 2.0:0-2 2.4:0-3 2.6:0-4 3.8:0-5",  # ListGroups
    17: "0.10.0:0-0 1.0:0-1",  # SaslHandshake
    18: "0.10.0:0-0 0.11.0:0-1 2.0:0-2 2.4:0-3 3.9:0-4",  # ApiVersions
    19: "0.10.1:0-0 0.10.2:0-1 0.11.0:0-2 2.0:0-3 2.4:0-5 2.7:0-6 2.8:0-7",  # CreateTopics
    20: "0.10.1:0-0 0.11.0:0-1 2.0:0-2 2.1:0-3 2.4:0-4 2.7:0-5 2.8:0-6",  # DeleteTopics
    21: "0.11.0:0-0 2.0:0-1 2.6:0-2",  # DeleteRecords
    22: "0.11.0:0-0 2.0:0-1 2.4:0-2 2.5:0-3 2.7:0-4 3.8:0-5",  # InitProducerId
    23: "0.11.0:0-0 2.0:0-1 2.1:0-2 2.3:0-3 2.8:0-4",  # OffsetForLeaderEpoch
    24: "0.11.0:0-0 2.0:0-1 2.7:0-2 2.8:0-3 3.6:0-4 3.8:0-5",  # AddPartitionsToTxn
    25: "0.11.0:0-0 2.0:0-1 2.7:0-2 2.8:0-3 3.8:0-4",  # AddOffsetsToTxn
    26: "0.11.0:0-0 2.0:0-1 2.7:0-2 2.8:0-3 3.8:0-4",  # EndTxn
    27: "0.11.0:0-0 2.8:0-1",  # WriteTxnMarkers
    28: "0.11.0:0-0 2.0:0-1 2.1:0-2 2.5:0-3 3.8:0-4",  # TxnOffsetCommit
    29: "0.11.0:0-0 2.0:0-1 2.5:0-2 3.3:0-3",  # DescribeAcls
    30: "0.11.0:0-0 2.0:0-1 2.5:0-2 3.3:0-3",  # CreateAcls
    31: "0.11.0:0-0 2.0:0-1 2.5:0-2 3.3:0-3",  # DeleteAcls
    32: "0.11.0:0-0 1.1:0-1 2.0:0-2 2.6:0-3 2.8:0-4",  # DescribeConfigs
    33: "0.11.0:0-0 2.0:0-1 2.8:0-2",  # AlterConfigs
    34: "1.0:0-0 2.0:0-1 2.8:0-2",  # AlterReplicaLogDirs
    35: "1.0:0-0 2.0:0-1 2.6:0-2 3.2:0-3 3.3:0-4",  # DescribeLogDirs
    36: "1.0:0-0 2.2:0-1 2.5:0-2",  # SaslAuthenticate
    37: "1.0:0-0 2.0:0-1 2.5:0-2 2.7:0-3",  # CreatePartitions
    38: "1.1:0-0 2.0:0-1 2.4:0-2 3.3:0-3",  # CreateDelegationToken
    39: "1.1:0-0 2.0:0-1 2.5:0-2",  # RenewDelegationToken
    40: "1.1:0-0 2.0:0-1 2.5:0-2",  # ExpireDelegationToken
    41: "1.1:0-0 2.0:0-1 2.5:0-2 3.3:0-3",  # DescribeDelegationToken
    42: "1.1:0-0 2.0:0-1 2.4:0-2",  # DeleteGroups
    43: "2.2:0-0 2.4:0-2",  # ElectLeaders
    44: "2.3:0-0 2.4:0-1",  # IncrementalAlterConfigs
    45: "2.4:0-0",  # AlterPartitionReassignments
    46: "2.4:0-0",  # ListPartitionReassignments
    47: "2.4:0-0",  # OffsetDelete
    48: "2.6:0-0 2.8:0-1",  # DescribeClientQuotas
    49: "2.6:0-0 2.8:0-1",  # AlterClientQuotas
    50: "2.7:0-0",  # DescribeUserScramCredentials
    51: "2.7:0-0",  # AlterUserScramCredentials
    56: "2.7:0-0 3.2:0-1 3.3:0-2 3.5:0-3",  # AlterPartition
    57: "2.7:0-0 3.3:0-1",  # UpdateFeatures
    58: "3.4:0-0",  # Envelope
    60: "2.8:0-0 3.7:0-1",  # DescribeCluster
    61: "2.8:0-0",  # DescribeProducers
    65: "3.0:0-0",  # DescribeTransactions
    66: "3.0:0-0 3.8:0-1",  # ListTransactions
    67: "3.0:0-0",  # AllocateProducerIds
    68: "3.7:0-0",  # ConsumerGroupHeartbeat
    69: "3.8:0-0",  # ConsumerGroupDescribe
}

KRAFT = {
    0: "3.3:0-9 3.7:0-10 3.8:0-11 4.0.0:0-12 4.1:0-13",  # Produce
    1: "3.3:0-13 3.5:0-15 3.7:0-16 3.9:0-17 4.0.0:4-17 4.1:4-18",  # Fetch
    2: "3.3:0-7 3.5:0-8 3.9:0-9 4.0.0:1-10 4.2:1-11",  # ListOffsets
    3: "3.3:0-12 4.0.0:0-13",  # Metadata
    8: "3.3:0-8 3.7:0-9 4.0.0:2-9 4.2:2-10",  # OffsetCommit
    9: "3.3:0-8 3.7:0-9 4.0.0:1-9 4.2:1-10",  # OffsetFetch
    10: "3.3:0-4 3.8:0-5 3.9:0-6",  # FindCoordinator
    11: "3.3:0-9 4.0.0:2-9 4.0:0-9",  # JoinGroup
    12: "3.3:0-4",  # Heartbeat
    13: "3.3:0-5",  # LeaveGroup
    14: "3.3:0-5",  # SyncGroup
    15: "3.3:0-5 4.0.0:0-6",  # DescribeGroups
    16: "3.3:0-4 3.8:0-5",  # ListGroups
    17: "3.3:0-1",  # SaslHandshake
    18: "3.3:0-3 3.9:0-4 4.4:0-5",  # ApiVersions
    19: "3.3:0-7 4.0.0:2-7",  # CreateTopics
    20: "3.3:0-6 4.0.0:1-6",  # DeleteTopics
    21: "3.3:0-2",  # DeleteRecords
    22: "3.3:0-4 3.8:0-5",  # InitProducerId
    23: "3.3:0-4 4.0.0:2-4",  # OffsetForLeaderEpoch
    24: "3.3:0-3 3.6:0-4 3.8:0-5",  # AddPartitionsToTxn
    25: "3.3:0-3 3.8:0-4",  # AddOffsetsToTxn
    26: "3.3:0-3 3.8:0-4 4.0.0:0-5",  # EndTxn
    27: "3.3:0-1 4.0.0:1-1 4.2:1-2",  # WriteTxnMarkers
    28: "3.3:0-3 3.8:0-4 4.0.0:0-5 4.4:0-6",  # TxnOffsetCommit
    29: "3.3:0-3 4.0.0:1-3",  # DescribeAcls
    30: "3.3:0-3 4.0.0:1-3",  # CreateAcls
    31: "3.3:0-3 4.0.0:1-3",  # DeleteAcls
    32: "3.3:0-4 4.0.0:1-4",  # DescribeConfigs
    33: "3.3:0-2",  # AlterConfigs
    34: "3.3:0-2 4.0.0:1-2",  # AlterReplicaLogDirs
    35: "3.3:0-4 4.0.0:1-4 4.3:1-5",  # DescribeLogDirs
    36: "3.3:0-2",  # SaslAuthenticate
    37: "3.3:0-3",  # CreatePartitions
    38: "3.6:0-3 4.0.0:1-3",  # CreateDelegationToken
    39: "3.6:0-2 4.0.0:1-2",  # RenewDelegationToken
    40: "3.6:0-2 4.0.0:1-2",  # ExpireDelegationToken
    41: "3.6:0-3 4.0.0:1-3",  # DescribeDelegationToken
    42: "3.3:0-2 4.4:0-3",  # DeleteGroups
    43: "3.3:0-2",  # ElectLeaders
    44: "3.3:0-1",  # IncrementalAlterConfigs
    45: "3.3:0-0 4.1:0-1",  # AlterPartitionReassignments
    46: "3.3:0-0",  # ListPartitionReassignments
    47: "3.3:0-0",  # OffsetDelete
    48: "3.3:0-1",  # DescribeClientQuotas
    49: "3.3:0-1",  # AlterClientQuotas
    50: "3.5:0-0",  # DescribeUserScramCredentials
    51: "3.5:0-0",  # AlterUserScramCredentials
    55: "3.3:0-1 3.9:0-2",  # DescribeQuorum
    57: "3.3:0-1 4.0.0:0-2",  # UpdateFeatures
    60: "3.3:0-0 3.7:0-1 4.0.0:0-2",  # DescribeCluster
    61: "3.3:0-0",  # DescribeProducers
    64: "3.3:0-0",  # UnregisterBroker
    65: "3.3:0-0",  # DescribeTransactions
    66: "3.3:0-0 3.8:0-1 4.1:0-2",  # ListTransactions
    68: "3.7:0-0 4.0.0:0-1",  # ConsumerGroupHeartbeat
    69: "3.8:0-0 4.0.0:0-1",  # ConsumerGroupDescribe
    74: "3.7:0-0 4.1:0-1",  # ListConfigResources
    75: "3.8:0-0",  # DescribeTopicPartitions
    76: "4.1:1-1",  # ShareGroupHeartbeat
    77: "4.1:1-1",  # ShareGroupDescribe
    78: "4.1:1-1 4.2:1-2",  # ShareFetch
    79: "4.1:1-1 4.2:1-2",  # ShareAcknowledge
    80: "3.9:0-0 4.2:0-1",  # AddRaftVoter
    81: "3.9:0-0",  # RemoveRaftVoter
    83: "4.1:0-0",  # InitializeShareGroupState
    84: "4.1:0-0",  # ReadShareGroupState
    85: "4.1:0-0 4.2:0-1",  # WriteShareGroupState
    86: "4.1:0-0",  # DeleteShareGroupState
    87: "4.1:0-0 4.2:0-1",  # ReadShareGroupStateSummary
    88: "4.2:0-0 4.4:0-1",  # StreamsGroupHeartbeat
    89: "4.2:0-0 4.4:0-1",  # StreamsGroupDescribe
    90: "4.1:0-0 4.2:0-1",  # DescribeShareGroupOffsets
    91: "4.1:0-0",  # AlterShareGroupOffsets
    92: "4.1:0-0",  # DeleteShareGroupOffsets
    93: "4.4:0-0",  # StreamsGroupTopologyDescriptionUpdate
    94: "4.4:0-0",  # UnregisterController
}

HISTORY = {"zookeeper": ZOOKEEPER, "kraft": KRAFT}
