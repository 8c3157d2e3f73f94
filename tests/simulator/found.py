"""Scripts that have found defects of the broker, or rules that were too strict, shrunk. Each history is right now."""

FOUND = {
    "the write-ahead log restores batches with an older epoch of the coordinator": """
        broker seed=234 kafka=3.9 nodes=2 durability=fsync partitions=4 sync_ms=10 skew_ms=-721 drift_percent=3
        transactional_producer name=p1 at_ms=79 transactional_id=x group=h version_2=0 zombie=1
        transactional_producer name=p2 at_ms=613 transactional_id=x group=h version_2=0 zombie=0
        transactional_producer name=p3 at_ms=679 transactional_id=y group=k version_2=0 zombie=1
        stop_node at_ms=677 node=1 down_ms=227
        power client=p3 call=23 down_ms=24 operations=11 again=3 keeps=none
    """,
    "offsets are appended behind the marker of a decision that the log is writing": """
        broker seed=211 kafka=3.9 nodes=1 durability=fsync partitions=3 sync_ms=3 turn_ms=10 segment_bytes=700 idle=1
        transactional_producer name=p1 at_ms=610 transactional_id=x group=h version_2=0 zombie=0
        transactional_producer name=p2 at_ms=669 transactional_id=x group=h version_2=0 zombie=0
        pause at_ms=561 client=p1 ms=192
        restart at_ms=894 client=p2
        slow_request client=p1 call=9 ms=89
        slow_response client=p2 call=20 ms=372
        pause at_ms=1147 client=p1 ms=611
        restart at_ms=1029 client=p2
        slow_response client=p2 call=13 ms=536
    """,
    "a killed process has the end of a transaction in one log and no marker in another": """
        broker seed=404 kafka=4.4 nodes=3 durability=fsync partitions=1 sync_ms=0 skew_ms=-2806 drift_percent=-3
        transactional_producer name=p1 at_ms=491 transactional_id=x group=h version_2=0 zombie=0
        transactional_producer name=p3 at_ms=518 transactional_id=y group=h version_2=1 zombie=0
        restart at_ms=1170 client=p1
        pause at_ms=489 client=p1 ms=1088
        kill client=p1 call=19 down_ms=150 operations=3
    """,
    "a killed process has a new epoch of the coordinator in markers only": """
        broker seed=21782 kafka=4.4 nodes=3 durability=os partitions=3 sync_ms=1 skew_ms=3543 drift_percent=3
        transactional_producer name=p1 at_ms=129 transactional_id=x group=h version_2=1 zombie=0
        transactional_producer name=p3 at_ms=649 transactional_id=y group=k version_2=0 zombie=0
        stop_node at_ms=671 node=2 down_ms=103
        kill client=p3 call=2 down_ms=184 operations=11
        stop_node at_ms=202 node=3 down_ms=465
    """,
    "a power loss takes the record of a transaction and leaves its batch": """
        broker seed=45835 kafka=4.4 nodes=1 durability=fsync partitions=3 sync_ms=0 turn_ms=40 segment_bytes=700
        classic_member name=c1 at_ms=328 group=g
        classic_member name=c2 at_ms=304 group=g
        transactional_producer name=p1 at_ms=678 transactional_id=x group=g version_2=1 zombie=1
        pause at_ms=298 client=c2 ms=1037
        power client=c1 call=17 down_ms=131 operations=2 keeps=some
        power at_ms=388 down_ms=89 operations=11 keeps=some
    """,
    "a member with the classic protocol repeats its JoinGroup to a consumer group": """
        broker seed=2 kafka=4.4 nodes=1 durability=fsync partitions=3 sync_ms=1 turn_ms=40 skew_ms=48 drift_percent=3
        consumer_member name=c1 at_ms=441 group=g
        classic_member name=c2 at_ms=402 group=g
        lose_response client=c2 call=5
    """,
    "offsets of a transaction are refused while a new process loads the transactions": """
        broker seed=2001872 kafka=4.4 nodes=1 durability=fsync partitions=1 sync_ms=1 turn_ms=40 skew_ms=-4178
        transactional_producer name=p1 at_ms=412 transactional_id=x group=h version_2=0 zombie=1
        reader name=r1 at_ms=253
        lose_response client=p1 call=18
        restart at_ms=506 client=r1
        power client=r1 call=7 down_ms=66 operations=19 keeps=some
        slow_request client=r1 call=3 ms=649
    """,
    "a batch is repeated while the log writes it, and the write fails": """
        broker seed=2003896 kafka=4.4 nodes=1 durability=fsync partitions=2 sync_ms=0 turn_ms=40 skew_ms=-2132
        share_member name=s2 at_ms=316 group=s
        producer name=q2 at_ms=146
        transactional_producer name=p1 at_ms=402 transactional_id=x group= version_2=0 zombie=0
        slow_request client=q2 call=3 ms=272
        disk_error client=s2 call=5 ms=300 operation=write of=others skips=2 count=1
    """,
    "the disk has no space for the leader epoch of a batch": """
        broker seed=2004498 kafka=4.4 nodes=3 durability=fsync partitions=4 sync_ms=1 turn_ms=1 skew_ms=-1602 idle=1
        consumer_member name=c1 at_ms=106 group=g
        consumer_member name=c2 at_ms=1 group=g
        producer name=q1 at_ms=115
        stop_node at_ms=722 node=3 down_ms=232
        stop_node at_ms=508 node=1 down_ms=561
        stop_node at_ms=1055 node=2 down_ms=142
        disk_full at_ms=1230 ms=50 free_bytes=30
    """,
    "the directory of a log is lost that was synced while the disk was full": """
        broker seed=2010025 kafka=3.9 nodes=3 durability=fsync partitions=2 sync_ms=10 turn_ms=1 skew_ms=-2370
        transactional_producer name=p1 at_ms=331 transactional_id=x group=h version_2=0 zombie=1
        reader name=r1 at_ms=149
        power at_ms=1103 down_ms=150 operations=19 keeps=some
        disk_full client=p1 call=25 ms=300 free_bytes=0
    """,
    "a member of a share group stays for ever, as the disk was full when its session ended": """
        broker seed=2009205 kafka=4.4 nodes=2 durability=os partitions=4 sync_ms=1 turn_ms=10 drift_percent=3
        share_member name=s1 at_ms=78 group=s
        committer name=o1 at_ms=72 group=solo
        restart at_ms=540 client=s1
        slow_response client=s1 call=8 ms=373
        lose_response client=s1 call=1
        disk_full at_ms=1036 ms=5 free_bytes=30
    """,
    "a member of a consumer group stays for ever, as the disk was full when its session ended": """
        broker seed=2010767 kafka=4.4 nodes=3 durability=os partitions=2 sync_ms=10 turn_ms=10 drift_percent=3
        classic_member name=c1 at_ms=89 group=g
        classic_member name=c2 at_ms=330 group=g
        consumer_member name=c3 at_ms=358 group=g
        restart at_ms=707 client=c2 becomes=consumer_member
        disk_full client=c1 call=16 ms=300 free_bytes=0
    """,
    "the commit cache accepts an older epoch for partitions that the member has lost": """
        broker seed=27507 kafka=4.4 nodes=3 durability=fsync partitions=4 sync_ms=10 turn_ms=40 drift_percent=3
        consumer_member name=c1 at_ms=329 group=g instance=i1
        consumer_member name=c2 at_ms=27 group=g instance=i2
        slow_response client=c1 call=27 ms=892
        slow_response client=c2 call=23 ms=525
        stop_node at_ms=366 node=1 down_ms=128
        lose_request client=c1 call=26
        slow_request client=c2 call=21 ms=1135
        restart at_ms=1332 client=c1
        lose_response client=c1 call=21
    """,
    "changes are decided while those before a failed write are not settled": """
        broker seed=2023303 kafka=4.4 durability=fsync partitions=2 sync_ms=10 turn_ms=40 segment_bytes=700
        classic_member name=c1 at_ms=192 group=g
        classic_member name=c2 at_ms=569 group=g
        classic_member name=c3 at_ms=439 group=g
        restart at_ms=443 client=c1 becomes=consumer_member
        restart at_ms=1393 client=c2 becomes=classic_member
        restart at_ms=969 client=c3 becomes=classic_member
        disk_full at_ms=1380 ms=50 free_bytes=0
    """,
    "changes are appended behind a failed write that is not reported yet": """
        broker seed=2040788 kafka=4.4 nodes=2 durability=fsync partitions=1 sync_ms=10 turn_ms=40 skew_ms=2032 idle=1
        share_member name=s1 at_ms=441 group=s
        share_member name=s2 at_ms=90 group=s
        producer name=q2 at_ms=205
        committer name=o1 at_ms=99 group=solo
        pause at_ms=318 client=s2 ms=286
        kill at_ms=729 down_ms=50 again=12
        slow_request client=s2 call=1 ms=520
        disk_error client=q2 call=3 ms=300 operation=write of=others skips=3 count=1000
    """,
    "a member gets a generation of a group that becomes a classic one, and the write fails": """
        broker seed=6001888 kafka=4.4 durability=fsync partitions=2 sync_ms=10 turn_ms=40 skew_ms=1280 idle=1
        consumer_member name=c1 at_ms=345 group=g
        classic_member name=c2 at_ms=164 group=g
        pause at_ms=931 client=c1 ms=1003
        restart at_ms=797 client=c2 becomes=classic_member
        disk_full at_ms=1439 ms=300 free_bytes=0
    """,
    "a group is replaced twice while the log writes, and both writes fail": """
        broker seed=6015193 kafka=4.4 durability=fsync partitions=2 sync_ms=3 turn_ms=40 skew_ms=3149 drift_percent=3
        consumer_member name=c1 at_ms=567 group=g instance=i1
        classic_member name=c2 at_ms=297 group=g instance=i2
        restart at_ms=1142 client=c1 becomes=classic_member
        restart at_ms=616 client=c2 becomes=classic_member
        restart at_ms=119 client=c1 becomes=consumer_member
        restart at_ms=934 client=c2 becomes=classic_member
        disk_full client=c2 call=14 ms=50 free_bytes=400
    """,
    "a power loss takes a new log with its leader epoch, and other logs have markers of that epoch": """
        broker seed=3042931 kafka=3.9 nodes=3 durability=fsync partitions=3 sync_ms=3 turn_ms=10 segment_bytes=700
        transactional_producer name=p1 at_ms=413 transactional_id=x group=h version_2=0 zombie=1
        stop_node at_ms=336 node=2 down_ms=333
        restart at_ms=352 client=p1
        stop_node at_ms=615 node=3 down_ms=72
        power at_ms=484 down_ms=120 operations=19 keeps=some
    """,
    "a full disk has no room for the leader epoch of the next records": """
        broker seed=62855 kafka=4.4 nodes=3 durability=fsync partitions=3 sync_ms=10 turn_ms=1 drift_percent=3
        share_member name=s1 at_ms=3 group=s
        producer name=q2 at_ms=88
        stop_node at_ms=112 node=1 down_ms=164
        slow_request client=s1 call=4 ms=441
        disk_full client=s1 call=6 ms=300 free_bytes=0
    """,
    "offsets that are no part of a transaction become visible with a later one": """
        broker seed=86656 kafka=4.4 nodes=1 durability=fsync partitions=2 sync_ms=0 turn_ms=40 segment_bytes=700 idle=1
        transactional_producer name=p1 at_ms=384 transactional_id=x group=h version_2=1 zombie=0
        transactional_producer name=p2 at_ms=694 transactional_id=x group=h version_2=1 zombie=0
        transactional_producer name=p3 at_ms=313 transactional_id=y group=h version_2=1 zombie=1
        committer name=o1 at_ms=54 group=solo
        disk_full at_ms=551 ms=300 free_bytes=400
    """,
}
"""By the defect."""

NO_DEFECTS = {
    "offsets of a transaction that were committed twice arrive once more in a later transaction": """
        broker seed=3035923 kafka=4.4 nodes=2 durability=os partitions=3 sync_ms=10 turn_ms=40 skew_ms=901
        transactional_producer name=p3 at_ms=65 transactional_id=y group=k version_2=0 zombie=0
        reader name=r1 at_ms=21
        slow_request client=p3 call=10 ms=825
        slow_request client=p3 call=6 ms=1101
    """,
    "a group that was empty begins again with generation 1": """
        broker seed=2026029 kafka=4.4 nodes=3 durability=fsync partitions=2 sync_ms=0 turn_ms=10 skew_ms=-3769
        classic_member name=c1 at_ms=330 group=g
        classic_member name=c2 at_ms=98 group=g
        reader name=r1 at_ms=11
        pause at_ms=1292 client=c2 ms=1083
        restart at_ms=848 client=c2 becomes=consumer_member
    """,
    "a static member with an epoch replaces a classic one at once": """
        broker seed=2028145 kafka=4.4 nodes=2 durability=fsync partitions=2 sync_ms=1 skew_ms=4344 drift_percent=3
        classic_member name=c1 at_ms=344 group=g instance=i1
        consumer_member name=c2 at_ms=418 group=g instance=i2
        consumer_member name=c3 at_ms=585 group=g
        stop_node at_ms=497 node=2 down_ms=442
        restart at_ms=1433 client=c1 becomes=consumer_member
    """,
    "a classic member waits for ever for a static one that a classic one has replaced": """
        broker seed=2017886 kafka=4.4 durability=os partitions=1 sync_ms=0 skew_ms=713 segment_bytes=700
        consumer_member name=c2 at_ms=190 group=g instance=i2
        consumer_member name=c3 at_ms=418 group=g instance=i3
        producer name=q1 at_ms=132
        kill client=q1 call=10 down_ms=15 operations=2 again=2
        slow_response client=q1 call=3 ms=324
        pause at_ms=358 client=c2 ms=1185
        kill at_ms=604 down_ms=38
        restart at_ms=1499 client=c2 becomes=classic_member
        restart at_ms=774 client=c3 becomes=classic_member
    """,
    "offsets of a transaction are visible some time after its end is acknowledged": """
        broker seed=2047734 kafka=4.4 nodes=3 durability=os partitions=4 sync_ms=0 turn_ms=1 skew_ms=452 drift_percent=3
        consumer_member name=c1 at_ms=169 group=g
        consumer_member name=c2 at_ms=467 group=g
        consumer_member name=c3 at_ms=39 group=g
        transactional_producer name=p1 at_ms=110 transactional_id=x group=g version_2=0 zombie=1
        reader name=r1 at_ms=156
        pause at_ms=434 client=p1 ms=826
        kill at_ms=1196 down_ms=48 operations=7
        restart at_ms=540 client=c1
        kill client=p1 call=1 down_ms=175 operations=3
        stop_node at_ms=1077 node=3 down_ms=152
        disk_error client=p1 call=29 ms=300 operation=write of=others skips=2 count=1
    """,
    "a static member with an epoch replaces a classic one, and its partition goes to another classic one": """
        broker seed=6000332 kafka=4.4 nodes=2 durability=fsync partitions=3 sync_ms=10 turn_ms=10 skew_ms=-1747
        classic_member name=c1 at_ms=81 group=g instance=i1
        classic_member name=c2 at_ms=421 group=g instance=i2
        classic_member name=c3 at_ms=77 group=g instance=i3
        restart at_ms=471 client=c1 becomes=consumer_member
    """,
    "a client that was paused reads the epoch of a group that was empty afterwards": """
        broker seed=6002778 kafka=4.4 durability=fsync partitions=4 sync_ms=10 turn_ms=10 segment_bytes=700
        consumer_member name=c1 at_ms=170 group=g
        classic_member name=c2 at_ms=552 group=g instance=i2
        pause at_ms=945 client=c1 ms=1049
        power at_ms=1172 down_ms=91 operations=0 keeps=none
        pause at_ms=1355 client=c2 ms=635
        restart at_ms=693 client=c2 becomes=classic_member
        restart at_ms=183 client=c1 becomes=classic_member
        restart at_ms=1203 client=c2 becomes=consumer_member
    """,
    "a static classic member has partitions that another one has not revoked, as it replaces the last other": """
        broker seed=6016398 kafka=4.4 durability=fsync partitions=2 sync_ms=10 turn_ms=10 skew_ms=2973
        classic_member name=c1 at_ms=345 group=g
        consumer_member name=c2 at_ms=197 group=g instance=i2
        restart at_ms=83 client=c1 becomes=classic_member
        restart at_ms=318 client=c2 becomes=classic_member
    """,
    "a classic member waits for ever for a static one, and another static one returns": """
        broker seed=6032524 kafka=4.4 nodes=3 durability=fsync partitions=4 sync_ms=3 turn_ms=40 skew_ms=-4576
        consumer_member name=c1 at_ms=559 group=g instance=i1
        classic_member name=c2 at_ms=118 group=g instance=i2
        classic_member name=c3 at_ms=499 group=g instance=i3
        restart at_ms=656 client=c1 becomes=classic_member
        restart at_ms=1449 client=c2 becomes=classic_member
    """,
    "a crash ends the rebalance of a group that has become a classic one": """
        broker seed=6033308 kafka=4.4 nodes=1 durability=fsync partitions=3 sync_ms=3 turn_ms=10 drift_percent=-3
        consumer_member name=c1 at_ms=159 group=g
        classic_member name=c2 at_ms=98 group=g
        kill client=c2 call=28 down_ms=98 operations=3
        slow_response client=c1 call=4 ms=632
        restart at_ms=923 client=c1 becomes=classic_member
        restart at_ms=1234 client=c2 becomes=classic_member
        disk_full client=c1 call=14 ms=50 free_bytes=0
    """,
}
"""Scripts in which real brokers do the same as this one, by what they do. No rule is broken."""
