"""Records: produce, consume, count, measure throughput, delete."""

from tests.clients.tool_steps import file, joined, left, query, records, run, topic
from tests.clients.tools import (
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_SPEED,
    DELETE_RECORDS,
    GROUPS,
    LATENCY,
    LOG_DIRS,
    OFFSETS,
    PRODUCER_SPEED,
    TRANSACTIONS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
)

KEYS = "--reader-property parse.key=true --reader-property key.separator=:"
HEADERS = "--reader-property parse.headers=true --reader-property headers.delimiter=/"
SHOW = " ".join(
    f"--formatter-property print.{name}=true" for name in ("key", "headers", "offset", "partition", "epoch", "delivery")
)
WAIT = "--timeout-ms 20000"

CONSOLE = (
    topic("console", 1),
    run(CONSOLE_PRODUCER, f"--topic console {KEYS} {HEADERS}", stdin="one:1,two:2/key:value\n"),
    run(CONSOLE_PRODUCER, "--topic console --compression-codec gzip", stdin="zipped\n"),
    run(CONSOLE_PRODUCER, "--topic console --compression-codec lz4 --request-required-acks 1", stdin="lz4\n"),
    run(CONSOLE_PRODUCER, "--topic console --compression-codec snappy --request-required-acks 0", stdin="snappy\n"),
    run(CONSOLE_PRODUCER, f"--topic console {KEYS}", "No key separator found on line number 1", stdin="lost\n"),
    run(CONSOLE_PRODUCER, "--topic 'no topic'", "INVALID_TOPIC_EXCEPTION", stdin="lost\n"),
    run(CONSOLE_PRODUCER, "--topic console --compression-codec zstd", stdin="zstd\n"),
    query(
        CONSOLE_CONSUMER,
        f"--topic console --partition 0 --offset earliest --max-messages 5 {WAIT} {SHOW}",
        "Partition:0\tOffset:0\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\tone:1,two:2\tkey\tvalue",
        "zipped\n",
        "lz4\n",
        "snappy\n",
        "zstd\n",
        "Processed a total of 5 messages",
    ),
    query(CONSOLE_CONSUMER, f"--topic console --partition 0 --offset 3 --max-messages 1 {WAIT}", "snappy\n"),
    run(CONSOLE_CONSUMER, "--topic console --partition 0 --offset latest --timeout-ms 500", "a total of 0 messages"),
    run(CONSOLE_CONSUMER, "--topic console --partition 3 --offset 0 --timeout-ms 500", "a total of 0 messages"),
    run(CONSOLE_CONSUMER, f"--topic console --group reads --from-beginning --max-messages 4 {WAIT}", "snappy\n"),
    query(GROUPS, "--describe --group reads", "console         0          4               5               1"),
    run(
        CONSOLE_CONSUMER,
        f"--include con.ole --group reads --isolation-level read_committed --max-messages 1 {WAIT}",
        "zstd\n",
    ),
    run(CONSOLE_CONSUMER, "--topic console --group reads --timeout-ms 500", "a total of 0 messages"),
    query(GROUPS, "--describe --group reads", "console         0          5               5               0"),
)

VERIFIABLE = (
    topic("verifiable", 1),
    run(
        VERIFIABLE_PRODUCER,
        "--topic verifiable --max-messages 5 --acks -1",
        '"name":"producer_send_success","key":null,"value":"4","offset":4,',
        '"name":"tool_data","sent":5,"acked":5,',
        measured=True,
        unordered=True,
    ),
    run(
        VERIFIABLE_PRODUCER,
        "--topic verifiable --max-messages 3 --value-prefix 7 --repeating-keys 2 --acks 1",
        '"key":"1","value":"7.1"',
        measured=True,
        unordered=True,
    ),
    run(
        VERIFIABLE_CONSUMER,
        "--topic verifiable --max-messages 8 --group-id verifies --verbose --group-instance-id first",
        '"name":"records_consumed","count":8,"partitions":[{"topic":"verifiable","partition":0,"count":8,"minOffset":0,',
        '"name":"offsets_committed","offsets":[{"topic":"verifiable","partition":0,"offset":8}],"success":true',
    ),
    query(GROUPS, "--describe --group verifies", "verifies        verifiable      0          8               8"),
)

PERFORMANCE = (
    topic("speed", 1),
    run(
        PRODUCER_SPEED,
        "--bootstrap-server ADDRESS --topic speed --num-records 1000 --record-size 100 --throughput -1",
        "1000 records sent, ",
        measured=True,
    ),
    query(OFFSETS, "--topic speed", "speed:0:1000"),
    run(CONSUMER_SPEED, "--topic speed --num-records 1000 --timeout 20000", ", 0.0954, ", ", 1000, ", measured=True),
    run(
        LATENCY,
        "--bootstrap-server ADDRESS --topic speed --num-records 3 --producer-acks 1 --record-size 20",
        "Avg latency",
        measured=True,
    ),
    query(OFFSETS, "--topic speed", "speed:0:1003"),
)

DELETED = '{"partitions":[{"topic":"counted","partition":0,"offset":3},{"topic":"counted","partition":1,"offset":-1}]}'
TOO_FAR = '{"partitions":[{"topic":"counted","partition":0,"offset":300},{"topic":"counted","partition":1,"offset":2}]}'

COUNTED = (
    topic("counted", 2),
    records("counted", 0, 10),
    records("counted", 1, 5),
    query(OFFSETS, "--topic counted", "counted:0:10\ncounted:1:5"),
    query(OFFSETS, "--topic counted --time earliest", "counted:0:0"),
    query(OFFSETS, "--topic counted --time -3", "counted:0:9\ncounted:1:4"),
    query(OFFSETS, "--topic counted --time 1700000003500", "counted:0:4"),
    query(OFFSETS, "--topic counted --time 1700000007000", "counted:0:7"),
    query(OFFSETS, "--topic counted --time 2700000000000"),
    query(OFFSETS, "--topic counted --time noon", "Malformed time argument noon"),
    query(LOG_DIRS, "--describe --topic-list counted", '"partition":"counted-0","size":', '"offsetLag":0'),
    query(LOG_DIRS, "--describe --topic-list counted,absent", '"partition":"counted-1"'),
    query(LOG_DIRS, "--describe --topic-list counted --broker-list 7777", "7777"),
    query(TRANSACTIONS, "describe-producers --topic counted --partition 1", "LastSequence", measured=True),
    file("delete.json", DELETED),
    file("too-far.json", TOO_FAR),
    file("no.json", "no JSON"),
    run(DELETE_RECORDS, "--offset-json-file FOLDER/delete.json", "partition: counted-0\tlow_watermark: 3"),
    query(OFFSETS, "--topic counted --time -2", "counted:0:3\ncounted:1:5"),
    query(OFFSETS, "--topic counted --time -1", "counted:0:10\ncounted:1:5"),
    run(DELETE_RECORDS, "--offset-json-file FOLDER/too-far.json", "OffsetOutOfRangeException"),
    run(DELETE_RECORDS, "--offset-json-file FOLDER/no.json", "The input string is not a valid JSON"),
    joined("counts", ["counted"]),
    left("counts"),
    query(GROUPS, "--describe --group counts", "counts          counted         0          10              10"),
)
