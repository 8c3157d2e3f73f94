"""ConfigCommand with users, client ids and addresses: client quotas (KIP-546, KIP-612)."""

from tests.clients.tool_steps import query, run
from tests.clients.tools import CONFIGS, OLD_CONFIGS

DONE, DEFAULT_DONE = "Completed updating config", "Completed updating default config"
DEFAULT_USER = "--entity-type users --entity-default"
ALICE, APP = "--entity-type users --entity-name alice", "--entity-type clients --entity-name app"
RATES = "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=12.5,controller_mutation_rate=3.5"

STEPS = (
    query(CONFIGS, "--describe --entity-type users"),
    run(CONFIGS, f"--alter {ALICE} --add-config '{RATES}'", DONE),
    run(CONFIGS, f"--alter {APP} --add-config producer_byte_rate=1", DONE),
    run(CONFIGS, f"--alter {ALICE} {APP} --add-config consumer_byte_rate=2", DONE),
    run(CONFIGS, f"--alter {DEFAULT_USER} {APP} --add-config consumer_byte_rate=3", DEFAULT_DONE),
    run(CONFIGS, "--alter --user-defaults --add-config producer_byte_rate=4", DEFAULT_DONE),
    run(CONFIGS, "--alter --client-defaults --add-config request_percentage=5", DEFAULT_DONE),
    run(CONFIGS, "--alter --ip 10.0.0.1 --add-config connection_creation_rate=6", DONE),
    run(CONFIGS, "--alter --ip-defaults --add-config connection_creation_rate=7", DEFAULT_DONE),
    query(CONFIGS, "--describe --entity-type users", "request_percentage=12.5", unordered=True),
    query(CONFIGS, f"--describe {ALICE}", "producer_byte_rate=1024.0"),
    query(CONFIGS, "--describe --user bob"),
    query(CONFIGS, "--describe --entity-type users --entity-default", "producer_byte_rate=4.0"),
    query(CONFIGS, "--describe --entity-type clients", "producer_byte_rate=1.0", unordered=True),
    query(CONFIGS, f"--describe {APP}", "producer_byte_rate=1.0"),
    query(CONFIGS, "--describe --entity-type users --entity-type clients", "consumer_byte_rate=3.0", unordered=True),
    query(CONFIGS, f"--describe {ALICE} {APP}", "consumer_byte_rate=2.0"),
    query(CONFIGS, f"--describe {ALICE} --entity-type clients", "consumer_byte_rate=2.0", unordered=True),
    query(CONFIGS, f"--describe {DEFAULT_USER} {APP}", "consumer_byte_rate=3.0"),
    query(CONFIGS, "--describe --entity-type ips", "connection_creation_rate=6.0", unordered=True),
    query(CONFIGS, "--describe --ip 10.0.0.1", "connection_creation_rate=6.0"),
    query(CONFIGS, "--describe --entity-type ips --entity-default", "connection_creation_rate=7.0"),
    run(CONFIGS, f"--alter {ALICE} --add-config producer_byte_rate=-1", "must be greater than 0"),
    run(CONFIGS, f"--alter {ALICE} --add-config producer_byte_rate=1.5", "cannot be a fractional value"),
    run(CONFIGS, f"--alter {ALICE} --add-config unknown=1", "unknown"),
    run(CONFIGS, "--alter --ip nowhere.invalid --add-config connection_creation_rate=1", "nowhere.invalid"),
    run(CONFIGS, f"--alter {ALICE} --delete-config request_percentage,controller_mutation_rate", DONE),
    run(CONFIGS, "--alter --user bob --delete-config producer_byte_rate", "producer_byte_rate"),
    query(CONFIGS, f"--describe {ALICE}", "consumer_byte_rate=2048.0"),
    run(CONFIGS, f"--alter {ALICE} --delete-config producer_byte_rate,consumer_byte_rate", DONE),
    run(CONFIGS, f"--alter {APP} --delete-config producer_byte_rate", DONE),
    run(CONFIGS, f"--alter {ALICE} {APP} --delete-config consumer_byte_rate", DONE),
    run(CONFIGS, f"--alter {DEFAULT_USER} {APP} --delete-config consumer_byte_rate", DEFAULT_DONE),
    run(CONFIGS, "--alter --user-defaults --delete-config producer_byte_rate", DEFAULT_DONE),
    run(CONFIGS, "--alter --client-defaults --delete-config request_percentage", DEFAULT_DONE),
    run(CONFIGS, "--alter --ip 10.0.0.1 --delete-config connection_creation_rate", DONE),
    run(CONFIGS, "--alter --ip-defaults --delete-config connection_creation_rate", DEFAULT_DONE),
    query(CONFIGS, "--describe --entity-type users"),
)

OLD = (
    run(OLD_CONFIGS, f"--alter {ALICE} {APP} --add-config producer_byte_rate=1024,request_percentage=0.5", DONE),
    run(OLD_CONFIGS, "--alter --entity-type clients --entity-default --add-config consumer_byte_rate=2", DEFAULT_DONE),
    run(OLD_CONFIGS, "--alter --entity-type ips --entity-name ::1 --add-config connection_creation_rate=1", "ips"),
    query(OLD_CONFIGS, f"--describe {ALICE} {APP}", "producer_byte_rate=1024.0"),
    query(OLD_CONFIGS, "--describe --entity-type clients", "consumer_byte_rate=2.0", unordered=True),
    run(OLD_CONFIGS, f"--alter {ALICE} {APP} --delete-config producer_byte_rate,request_percentage", DONE),
    run(OLD_CONFIGS, "--alter --entity-type clients --entity-default --delete-config consumer_byte_rate", DEFAULT_DONE),
    query(OLD_CONFIGS, "--describe --entity-type clients"),
)
"""The tool of 2.8.2, the first that asks brokers and knows addresses."""
