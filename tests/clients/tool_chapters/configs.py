"""Configs of topics are told and changed."""

from tests.clients.tool_steps import look, run, wait
from tests.clients.tools import CONFIGS, TOPICS

OF_TOPIC = "--entity-type topics --entity-name configured"

OF_TOPICS = (
    run(TOPICS, "--create --topic configured --config segment.bytes=2000000", "Created topic configured."),
    wait("configured", 1),
    look(CONFIGS, f"--describe {OF_TOPIC}", "segment.bytes=2000000", "DYNAMIC_TOPIC_CONFIG:segment.bytes=2000000"),
    look(CONFIGS, f"--describe {OF_TOPIC} --all", "retention.ms=604800000", "DEFAULT_CONFIG:log.cleanup.policy=delete"),
    look(CONFIGS, "--describe --entity-type topics --entity-name not-there", "not-there"),
    run(
        CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=5,cleanup.policy=[compact,delete]", "Completed updating"
    ),
    look(CONFIGS, f"--describe {OF_TOPIC}", "retention.ms=5 ", "cleanup.policy=compact,delete"),
    run(CONFIGS, f"--alter {OF_TOPIC} --add-config no.such=1", "Unknown topic config name: no.such"),
    run(CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=soon", "Invalid value soon"),
    run(
        CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=7 --delete-config cleanup.policy", "Completed updating"
    ),
    look(CONFIGS, f"--describe {OF_TOPIC}", "retention.ms=7 "),
    run(CONFIGS, f"--alter {OF_TOPIC} --delete-config cleanup.policy", "Completed updating"),
    run(CONFIGS, f"--alter {OF_TOPIC} --delete-config retention.ms", "Completed updating"),
    look(TOPICS, "--describe --topic configured", "segment.bytes=2000000"),
    run(CONFIGS, "--alter --entity-type topics --entity-name not-there --add-config retention.ms=7", "not-there"),
    run(CONFIGS, "--alter --entity-type topics --add-config retention.ms=7", "An entity name must be specified"),
)
