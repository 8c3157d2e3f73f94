"""The benches that start kproto, as short as possible: they run, and no time is asserted."""

from __future__ import annotations

import json

import pytest

import bench.__main__
from tests.requirements import need_go


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert bench.__main__.main([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_start_measures_a_process_an_embedded_broker_and_a_reset(capsys: pytest.CaptureFixture[str]) -> None:
    process, embedded, reset = rows(capsys, "start", "--rounds", "1", "--only", "kproto,import-trio")
    assert process.keys() == {"bench", "case", "kproto", "import-trio"}
    assert embedded.keys() == {"bench", "case", "kproto"}
    assert reset.keys() == {"bench", "case", "kproto"}


def test_commit_loads_kproto_and_verifies_every_offset(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    shape = ["--shapes", "4x8", "--partitions", "3"]
    short = ["--rounds", "1", "--seconds", "0.1"]
    (row,) = rows(capsys, "commit", "--only", "kproto", "--durability", "memory", *shape, *short)
    assert row["case"] == "memory, 3 partitions, 4x8"
    figures = row["kproto"]
    assert isinstance(figures, dict)
    assert figures.keys() == {"requests_per_s", "p50_us", "p99_us", "server_cpu_us_per_request"}
    assert figures["requests_per_s"] > 0


def test_groups_loads_kproto_with_many_groups_and_with_few(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    short = ["--rounds", "1", "--seconds", "0.1", "--groups", "500"]
    (row,) = rows(capsys, "groups", "--only", "kproto,few-groups", "--durability", "memory", *short)
    assert list(row) == ["bench", "case", "kproto", "few-groups"]
    assert row["case"] == "memory, 500 groups"


def test_memory_fills_a_server_over_the_wire(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    (row,) = rows(capsys, "memory", "--only", "kproto", "--shapes", "200x2x8")
    assert row["case"] == "200 groups x 2 topics x 8 partitions"
    figures = row["kproto"]
    assert isinstance(figures, dict)
    assert figures.keys() == {"resident_bytes_per_entry", "lively_bytes_per_entry", "fill_s"}


def test_backpressure_measures_the_cost_of_other_clients(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    found = rows(capsys, "backpressure", "--only", "kproto", "--rounds", "1", "--seconds", "0.1")
    beside = ("alone", "beside 1,000 idle connections", "beside one that reads nothing")
    assert [row["case"] for row in found] == [
        f"10 partitions, {shape}, {others}" for shape in ("1x1", "8x16") for others in beside
    ]
    for row in found:
        figures = row["kproto"]
        assert isinstance(figures, dict)
        assert figures.keys() == {"requests_per_s", "p99_us", "times_slower", "p99_times_later"}


def test_rebalance_measures_how_long_members_wait_for_their_assignment(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    short = ["--durability", "memory", "--members", "7", "--rounds", "1"]
    found = rows(capsys, "rebalance", "--only", "kproto", *short)
    events = ("all join", "one more joins", "one leaves")
    assert [row["case"] for row in found] == [
        f"memory, {protocol}7 members: {event}" for protocol in ("", "consumer protocol, ") for event in events
    ]
    for row in found:
        figures = row["kproto"]
        assert isinstance(figures, dict)
        assert figures.keys() == {"ms", "server_cpu_ms"}
        assert figures["ms"] > 0


def test_throughput_moves_every_message_with_a_real_client(capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--durability", "memory", "--megabytes", "2", "--rounds", "1"]
    found = rows(capsys, "throughput", "--only", "kproto", *short)
    batches = ("10 x 10,000 bytes a batch", "1,000 x 100 bytes a batch")
    assert [row["case"] for row in found] == [
        f"memory, {way} {size}" for size in batches for way in ("produce", "consume")
    ]
    for row in found:
        figures = row["kproto"]
        assert isinstance(figures, dict)
        assert figures.keys() == {"mb_per_s", "messages_per_s", "server_cpu_ms_per_mb", "client_cpu_ms_per_mb"}
        assert figures["mb_per_s"] > 0


def test_proxy_measures_round_trips_and_records_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "proxy", "--megabytes", "2", "--requests", "50", "--rounds", "1")
    assert [row["case"] for row in found] == ["round trip", "produce", "consume"]
    for row in found:
        through, direct = row["kproto"], row["direct"]
        assert isinstance(through, dict)
        assert isinstance(direct, dict)
        is_round_trip = row["case"] == "round trip"
        assert direct.keys() == ({"p50_us"} if is_round_trip else {"mb_per_s"})
        assert through.keys() - direct.keys() == ({"added_us"} if is_round_trip else set())
        assert min(direct.values()) > 0


def test_client_reads_every_message_with_each_consumer(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "client", "--messages", "4000", "--rounds", "1")
    modes = ("features off", "features on", "catching up", "async")
    calls = dict.fromkeys(modes, ("poll()", "consume(500)")) | {"async": ("async for", "poll()", "consume(500)")}
    assert [row["case"] for row in found] == [
        *(f"{mode}, {call}" for mode in modes for call in calls[mode]),
        "async, a member joins",
    ]
    for row in found:
        joins = row["case"] == "async, a member joins"
        of_case = ["rebalance_ms"] if joins else ["messages_per_s", "messages_per_cpu_s"]
        for consumer in ("kproto", "aiokafka" if str(row["case"]).startswith("async") else "confluent-kafka"):
            figures = row[consumer]
            assert isinstance(figures, dict)
            assert all(figures[figure] > 0 for figure in of_case)


def test_restart_writes_a_history_and_finds_every_offset(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    (row,) = rows(capsys, "restart", "--only", "kproto", "--keys", "1600", "--commits", "3200", "--rounds", "1")
    assert row["case"] == "3,200 commits of 1,600 keys"
    figures = row["kproto"]
    assert isinstance(figures, dict)
    assert figures["served_s"] >= figures["first_response_s"] > 0
    assert figures["stored_mb"] > 0


def test_shares_measures_members_that_fetch_and_acknowledge(capsys: pytest.CaptureFixture[str]) -> None:
    need_go()
    short = ["--rounds", "1", "--records", "2000", "--durability", "memory"]
    found = rows(capsys, "shares", "--only", "kproto", *short)
    assert [row["case"] for row in found] == [
        f"memory, {members}, {partitions}"
        for members in ("1 member", "16 members")
        for partitions in ("1 partition", "10 partitions")
    ]
    for row in found:
        figures = row["kproto"]
        assert isinstance(figures, dict)
        assert figures.keys() == {"records_per_s", "p99_us", "server_cpu_us"}
        assert figures["records_per_s"] > 0
