"""The page at the control port shows a broker with real clients, and controls it.

Method. Chromium opens the page; what it shows is read from it, and its buttons are clicked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server import Broker
from kproto_server.control import listening, page_files
from kproto_server.control.listening import open_port
from kproto_server.observation import request_log
from kproto_server.requests.context import ConnectionInfo
from tests.browser import Browser, Page, opened
from tests.control.client import Client, commit, controlled
from tests.html_layout import MEASURE, SMALL, WIDE, assert_fits
from tests.network.raw_client import RawClient

SETTINGS = {
    "num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
}
HOSTILE = "<img src=x onerror=alert(1)>\u202egpj.exe\x1b[31m"
SOURCES = Path(page_files.__file__).parent / page_files.FOLDER


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@contextmanager
def shown(browser: Browser, client: Client) -> Iterator[Page]:
    """Open the page of a broker; it reports no error."""
    page = browser.page(client.url + "/")
    page.resize(WIDE)
    page.wait("document.querySelector('#live')?.textContent === 'live'")
    yield page
    assert page.errors == []
    page.go_to("about:blank")


@contextmanager
def at_work(broker: Broker, client_id: str = "billing-1", group: str = "billing") -> Iterator[Consumer]:
    """Run a producer and a consumer that has committed."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "web-shop"})
    for number in range(9):
        producer.produce("orders", f"order {number}", key=f"customer {number % 3}", partition=number % 3)
    assert producer.flush(30) == 0
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "client.id": client_id,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    with closing(Consumer(config)) as consumer:
        consumer.subscribe(["orders"])
        for _ in range(6):
            assert consumer.poll(30) is not None
        offsets = [TopicPartition("orders", partition, 2) for partition in range(3)]
        consumer.commit(offsets=offsets, asynchronous=False)
        yield consumer


def test_groups_topics_brokers_and_requests_are_shown_while_clients_work(browser: Browser) -> None:
    with controlled(brokers=3, settings=SETTINGS) as (broker, client), shown(browser, client) as page:
        with at_work(broker) as consumer:
            page.wait("/billing.*1 member.*lag 3/s.test(document.querySelector('#group-list').innerText)")
            assert page.text("#group-list .chip") == "Stable"
            page.click("#group-list button.item-head")
            page.wait("document.querySelectorAll('#group-list table')[1]?.tBodies[0].rows.length > 0")
            detail = page.text("#group-list .item-detail")
            assert "billing-1 (leader)" in detail
            assert "orders: 0, 1, 2" in detail
            assert "never" in detail  # a topic that the group reads
            page.wait("document.querySelectorAll('#timeline-chart .mark.commit').length > 0")
            page.wait("document.querySelectorAll('#timeline-chart .mark.join').length > 0")
            consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
            page.wait("document.querySelector('#log-rows').innerText.includes('OffsetCommit')")
        page.wait("document.querySelector('#group-list .item-detail').innerText.includes('6 d 23 h')")
        assert page.text("#group-list .chip") == "Empty"
        assert "9 records" in page.text("#topic-list")
        page.click("#topic-list button.item-head")
        page.wait("document.querySelectorAll('#topic-list .record').length === 9")
        assert "customer 2\norder 8" in page.text("#topic-list .records")
        assert page.evaluate("document.querySelectorAll('#node-list .chip.good').length") == 3


def test_requests_are_filtered_and_opened(browser: Browser) -> None:
    with controlled(settings=SETTINGS) as (broker, client), shown(browser, client) as page:
        commit(broker, "billing")
        commit(broker, "shipping", 77)
        page.fill("#filter [name=api]", "OffsetCommit")
        page.fill("#filter [name=group]", "shipping")
        page.wait("document.querySelectorAll('.log-row').length === 1")
        page.click(".log-row")
        page.wait("!document.querySelector('#request').hidden")
        assert '"committed_offset": 77' in page.text("#request")
        page.fill("#filter [name=api]", "OffsetComit")
        page.wait("!document.querySelector('#filter-message').hidden")
        assert "there is no API 'OffsetComit'" in page.text("#filter-message")
        page.fill("#filter [name=api]", "OffsetCommit")
        page.wait("document.querySelectorAll('.log-row').length === 1")
        commit(broker, "shipping", 78)
        page.wait("document.querySelectorAll('.log-row').length > 1")
        page.click("#clear")
        page.wait("document.querySelectorAll('.log-row').length === 0")
        page.errors.clear()
        errors = [one for one in page.errors if "400" not in one]  # the wrong name, which the browser reports
        assert errors == []
        browser.events.clear()


def test_the_clock_brokers_and_faults_are_controlled(browser: Browser) -> None:
    with controlled(brokers=2, clock="manual", settings=SETTINGS) as (broker, client), shown(browser, client) as page:
        commit(broker)
        page.wait("document.querySelector('#group-list').innerText.includes('expire: 7 d')")
        before_ms = broker.clock.now_ms()
        page.click("[data-ms='691200000']")
        page.wait("!document.querySelector('#group-list').innerText.includes('billing')")
        assert broker.clock.now_ms() == before_ms + 691_200_000
        page.evaluate(
            "[...document.querySelectorAll('#node-list button')].filter(b => b.textContent === 'Stop')[1].click()"
        )
        page.wait("document.querySelector('#node-list').innerText.includes('stopped')")
        page.evaluate(
            "[...document.querySelectorAll('#node-list button')].filter(b => b.textContent === 'Start')[1].click()"
        )
        page.wait("document.querySelectorAll('#node-list .chip.good').length === 2")
        page.fill("#fault-form [name=api]", "OffsetCommit")
        page.fill("#fault-form [name=times]", "1")
        page.click("#fault-form button:not([type])")
        page.wait("document.querySelector('#fault-list').innerText.includes('fired 0 times')")
        (rule,) = broker.faults
        assert rule.given == {"api": "OffsetCommit", "times": 1, "error": "NOT_COORDINATOR"}
        commit(broker)
        page.wait("document.querySelector('#fault-list').innerText.includes('fired 1 time')")
        page.wait("document.querySelectorAll('.mark.commit.failed').length === 1")
        page.click("#fault-list button")
        page.wait("document.querySelector('#fault-list').children.length === 0")
        page.click("#reset")
        page.click("#reset")
        page.wait("document.querySelector('#group-list').children.length === 0")


def test_names_of_clients_are_texts(browser: Browser) -> None:
    with (
        controlled(settings=SETTINGS) as (broker, client),
        shown(browser, client) as page,
        at_work(broker, HOSTILE, HOSTILE),
    ):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        headers: list[tuple[str, str | bytes | None]] = [(HOSTILE, HOSTILE)]
        producer.produce("notes", HOSTILE, key=b"\xff<b>", headers=headers)
        producer.flush(30)
        page.wait("document.querySelector('#topic-list').innerText.includes('notes')")
        page.evaluate("[...document.querySelectorAll('#topic-list button.item-head')].map(one => one.click()).length")
        page.wait("document.querySelector('#topic-list').innerText.includes('base64 /zxiPg==')")
        page.wait("document.querySelector('#group-list').innerText.includes('1 member')")
        page.wait("document.querySelectorAll('.mark').length > 0")
        page.click("#group-list button.item-head")
        page.wait("document.querySelector('#group-list tbody tr') !== null")
        page.click(".log-row")
        page.wait("!document.querySelector('#request').hidden")
        assert page.evaluate("document.querySelectorAll('img, iframe, script:not([src]), b b').length") == 0
        text = page.evaluate("document.body.innerText")
        assert "<img src=x onerror=alert(1)>\\u{202e}gpj.exe\\u{1b}[31m" in text
        assert not re.search("[\u202e\x1b]", page.evaluate("document.documentElement.outerHTML"))
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("width", [SMALL, 800, WIDE])
def test_all_of_the_page_is_visible_at_any_width(browser: Browser, width: int) -> None:
    long = "a-name-without-any-break-" * 8
    with controlled(brokers=3, settings=SETTINGS) as (broker, client), shown(browser, client) as page:
        broker.faults.add(api="Produce", client_id=long, error="NOT_LEADER_OR_FOLLOWER")
        with at_work(broker, long, long):
            page.resize(width)
            page.wait("document.querySelector('#group-list').innerText.includes('1 member')")
            page.wait("document.querySelectorAll('.mark').length > 0")
            for target in ("#group-list button.item-head", ".log-row"):
                page.click(target)
            page.wait("!document.querySelector('#request').hidden")
            page.wait("document.querySelector('#group-list tbody tr') !== null")
            script = re.sub(r"</?script>", "", MEASURE)
            page.evaluate(f"(() => {{{script}}})()")
            measures = page.evaluate("JSON.parse(document.title)")
    measures["narrow"] = []  # cells break anywhere: names of clients
    measures["cut"] = [
        one for one in measures["cut"] if not re.match(r'<(span|b) class="(client|names soft|api)"', one)
    ]
    assert_fits(measures)


COLORS = """
(() => {
    const parts = color => color.match(/[\\d.]+/g).map(Number)
    const luminance = color => parts(color).slice(0, 3).map(one => one / 255)
        .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
        .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0)
    const background = element => {
        for (; element !== null; element = element.parentElement) {
            const [red, green, blue, alpha = 1] = parts(getComputedStyle(element).backgroundColor)
            if (alpha === 1) return `rgb(${red}, ${green}, ${blue})`
        }
        return 'rgb(255, 255, 255)'
    }
    const contrast = element => {
        const [low, high] = [getComputedStyle(element).color, background(element)].map(luminance).sort((a, b) => a - b)
        return (high + 0.05) / (low + 0.05)
    }
    const hasText = one => [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim() !== '')
    const texts = [...document.body.querySelectorAll('*:not(script, option)')]
        .filter(one => hasText(one) && one.checkVisibility() && !one.closest('svg, :disabled'))
    return {
        background: luminance(background(document.body)),
        count: texts.length,
        faint: texts.filter(one => contrast(one) < 4.5).map(one => `${one.outerHTML.slice(0, 80)} ${contrast(one)}`),
    }
})()
"""
"""The luminance of the page, and the texts with less contrast than WCAG's level AA asks for."""


def test_texts_are_readable_in_light_and_dark_mode(browser: Browser) -> None:
    """With groups, failed requests, a stopped node and a fault rule."""
    with controlled(brokers=2, settings=SETTINGS) as (broker, client), shown(browser, client) as page:
        broker.faults.add(api="OffsetCommit", error="NOT_COORDINATOR", times=1)
        commit(broker)
        broker.stop_node(2)
        page.wait("document.querySelector('#group-list button.item-head') !== null")
        for target in ("#group-list button.item-head", "#topic-list button.item-head", ".log-row"):
            page.click(target)
        page.wait("!document.querySelector('#request').hidden")
        page.wait("document.querySelector('#node-list').innerText.includes('stopped')")
        found = {}
        for is_dark in (False, True):
            page.set_dark(is_dark)
            found[is_dark] = page.evaluate(COLORS)
        page.set_dark(False)
    assert found[False]["background"] > 0.8
    assert found[True]["background"] < 0.05
    assert found[False]["count"] > 50
    assert (found[False]["faint"], found[True]["faint"]) == ([], [])


def test_a_page_of_a_port_with_a_token_asks_for_it(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(listening.TOKEN_VARIABLE, "secret")
    with Broker.running() as broker:
        port = open_port("0.0.0.0", 0)  # noqa: S104
        broker.run(lambda server: server.start_task(port.serve))
        url = port.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        page = browser.page(url + "/")
        page.wait("document.querySelector('#token-form')?.hidden === false")
        page.fill("#token", "wrong")
        page.click("#token-form button")
        page.wait("document.querySelector('#live').textContent === 'disconnected'")
        page.fill("#token", "secret")
        page.click("#token-form button")
        page.wait("document.querySelector('#live').textContent === 'live'")
        page.click("[data-ms='1000']")
        page.wait("document.querySelector('#message').hidden")
        page.go_to("about:blank")
        other = browser.page(url + "/#token=secret")
        other.wait("document.querySelector('#live')?.textContent === 'live'")
        assert other.evaluate("location.hash") == ""
        other.go_to("about:blank")
        browser.events.clear()


def test_a_hundred_thousand_requests_do_not_slow_the_page(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "SIZE_MAX_BYTES", 1 << 30)
    with controlled(requests_kept=100_000) as (broker, client):
        with RawClient(broker.bootstrap_servers) as raw:
            frame = raw.frame(ApiVersionsRequest(), 0, 7)[4:]
        info = ConnectionInfo("/127.0.0.1")
        broker.run(lambda server: [server.request_log.add(info, 1, frame, 0) for _ in range(100_000)])  # type: ignore[union-attr]
        with shown(browser, client) as page:
            page.wait("document.querySelectorAll('.log-row').length > 0")
            assert page.evaluate("document.querySelectorAll('.log-row').length") < 60
            for _ in range(3):
                commit(broker)
                broker.run(lambda server: [server.request_log.add(info, 1, frame, 0) for _ in range(2_000)])  # type: ignore[union-attr]
            page.wait("document.querySelector('#log').dataset.skipped !== ''")
            page.evaluate("document.querySelector('#log').scrollTop = 1e6")
            page.wait("document.querySelectorAll('.log-row').length > 0")
            assert page.evaluate("document.querySelectorAll('*').length") < 1000


def test_the_page_makes_no_markup_and_has_a_policy() -> None:
    for name in page_files.NAMES:
        if name.endswith(".js"):
            source = (SOURCES / name).read_text()
            assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", source), name
    with controlled() as (_, client):
        for path in ("/", *(f"/page/{name}" for name in page_files.NAMES)):
            reply = client("GET", path)
            assert reply.status == 200
            assert reply.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert client("GET", "/page/../operations.py").status == 404
        assert client("POST", "/").status == 404
        assert client("GET", "/", headers={"Host": "evil.example"}).status == 403
    assert {one.name for one in SOURCES.iterdir()} == {*page_files.NAMES, "index.html"} - {"html_page.css"}
