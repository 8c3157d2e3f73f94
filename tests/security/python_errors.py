"""Which error a Python client, or kcat, gets from a secured listener: LIBRARY, with the cases as JSON in its input.

Each library is imported by its own function: the others may be missing.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

LIMIT_S = 30.0
TOPIC = "orders"
OF_KCAT = (
    "certificate verify failed",
    "SASL authentication error",
    "Topic authorization failed",
    "SSL handshake failed",
    "Local: Broker transport failure",
)
"""What kcat prints of an error; the first one that is there counts."""
WITHOUT_REASON = {"_TRANSPORT", "_ALL_BROKERS_DOWN"}
REASON_LIMIT_S = 3.0
"""librdkafka tries again: on a busy machine the reason may come after these errors, within this time."""
Case = dict[str, str]


def of_librdkafka(case: Case) -> dict[str, Any]:
    settings = {"bootstrap.servers": case["Servers"], "ssl.ca.location": case["CA"]}
    settings["security.protocol"] = "sasl_ssl" if case["Mechanism"] else "ssl"
    if case["Cert"]:
        settings |= {"ssl.certificate.location": case["Cert"], "ssl.key.location": case["Key"]}
    if case["Mechanism"]:
        settings["sasl.mechanism"] = case["Mechanism"]
    if case["Mechanism"] not in ("", "OAUTHBEARER"):
        settings |= {"sasl.username": case["User"], "sasl.password": case["Password"]}
    return settings


def confluent(case: Case) -> str:
    import confluent_kafka

    results: list[Any] = []
    settings = of_librdkafka(case) | {"error_cb": results.append}
    if case["Token"]:
        settings["oauth_cb"] = lambda _: (case["Token"], time.time() + 3600)
    producer = confluent_kafka.Producer(settings)
    producer.produce(TOPIC, b"v", on_delivery=lambda error, _: results.append(error))
    names: list[str] = []
    deadline = time.monotonic() + LIMIT_S
    while WITHOUT_REASON.issuperset(names) and time.monotonic() < deadline:
        if names:
            deadline = min(deadline, time.monotonic() + REASON_LIMIT_S)
        producer.poll(0.1)
        names = ["ok" if error is None else str(error.name()) for error in results]
    producer.purge()
    return next((name for name in names if name not in WITHOUT_REASON), names[0] if names else "nothing")


def kcat(case: Case) -> str:
    settings = of_librdkafka(case) | {"message.timeout.ms": "10000"}
    words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    done = subprocess.run(
        ["kcat", "-P", "-t", TOPIC, *words], input="v\n", capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode == 0 and not done.stderr:
        return "ok"
    return next((text for text in OF_KCAT if text in done.stderr), done.stderr)


def kafka_python(case: Case) -> str:
    import kafka
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # it has no types
        def token(self) -> str:
            return case["Token"]

    settings: dict[str, Any] = {
        "bootstrap_servers": case["Servers"], "security_protocol": "SASL_SSL" if case["Mechanism"] else "SSL",
        "ssl_cafile": case["CA"], "bootstrap_timeout_ms": 5000, "max_block_ms": 10_000,
    }  # fmt: skip
    if case["Cert"]:
        settings |= {"ssl_certfile": case["Cert"], "ssl_keyfile": case["Key"]}
    if case["Mechanism"]:
        settings["sasl_mechanism"] = case["Mechanism"]
    if case["Token"]:
        settings["sasl_oauth_token_provider"] = Tokens()
    elif case["Mechanism"]:
        settings |= {"sasl_plain_username": case["User"], "sasl_plain_password": case["Password"]}
    try:
        with kafka.KafkaProducer(**settings) as producer:
            producer.send(TOPIC, b"v").get(LIMIT_S)
    except Exception as error:  # noqa: BLE001 - its class is the result
        return class_of(error)
    return "ok"


def aiokafka(case: Case) -> str:
    import aiokafka as library
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.helpers import create_ssl_context

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return case["Token"]

    async def run() -> None:
        certificate = {"certfile": case["Cert"], "keyfile": case["Key"]} if case["Cert"] else {}
        settings: dict[str, Any] = {
            "bootstrap_servers": case["Servers"], "security_protocol": "SASL_SSL" if case["Mechanism"] else "SSL",
            "ssl_context": create_ssl_context(cafile=case["CA"], **certificate),
        }  # fmt: skip
        if case["Mechanism"]:
            settings["sasl_mechanism"] = case["Mechanism"]
        if case["Token"]:
            settings["sasl_oauth_token_provider"] = Tokens()
        elif case["Mechanism"]:
            settings |= {"sasl_plain_username": case["User"], "sasl_plain_password": case["Password"]}
        async with library.AIOKafkaProducer(**settings) as producer:
            await asyncio.wait_for(producer.send_and_wait(TOPIC, b"v"), LIMIT_S)

    try:
        asyncio.run(run())
    except Exception as error:  # noqa: BLE001 - its class is the result
        return class_of(error)
    return "ok"


def class_of(error: BaseException) -> str:
    """Return the class of an error, and that of its cause."""
    names = [type(error).__name__]
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
        names.append(type(error).__name__)
    return " of ".join(dict.fromkeys(names))


LIBRARIES = {"confluent-kafka": confluent, "kcat": kcat, "kafka-python": kafka_python, "aiokafka": aiokafka}


def main() -> None:
    produce, cases = LIBRARIES[sys.argv[1]], json.load(sys.stdin)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(produce, cases))
    print(json.dumps({case["Name"]: result for case, result in zip(cases, results, strict=True)}))


if __name__ == "__main__":
    main()
