"""Share groups (KIP-932): their members, the records that members have acquired, and the state of share partitions."""
