"""ConfigCommand with users: SCRAM credentials (KIP-554)."""

from tests.clients.tool_steps import query, run
from tests.clients.tools import CONFIGS

ALTER = "--alter --entity-type users --entity-name alice --add-config"
DELETE = "--alter --entity-type users --entity-name alice --delete-config"
DESCRIBE = "--describe --entity-type users"

CREDENTIALS = (
    query(CONFIGS, DESCRIBE),
    run(CONFIGS, f"{ALTER} 'SCRAM-SHA-256=[iterations=8192,password=alice-secret]'", "Completed updating config"),
    query(CONFIGS, DESCRIBE, "SCRAM-SHA-256=iterations=8192"),
    query(CONFIGS, f"{DESCRIBE} --entity-name alice", "SCRAM-SHA-256=iterations=8192"),
    run(CONFIGS, f"{ALTER} 'SCRAM-SHA-512=[password=alice-secret]'", "Completed updating config"),
    query(CONFIGS, f"{DESCRIBE} --entity-name unknown"),
    run(CONFIGS, f"{ALTER} 'SCRAM-SHA-256=[iterations=100,password=alice-secret]'", "less than the minimum 4096"),
    run(CONFIGS, f"{ALTER} 'SCRAM-SHA-256=[iterations=20000,password=alice-secret]'", "Too many iterations"),
    run(CONFIGS, f"{DELETE} 'SCRAM-SHA-256'", "Completed updating config"),
    query(CONFIGS, DESCRIBE, "SCRAM-SHA-512=iterations=4096"),
    run(CONFIGS, f"{DELETE} 'SCRAM-SHA-256'", "Attempt to delete a user credential that does not exist"),
    run(CONFIGS, f"{DELETE} 'SCRAM-SHA-512'", "Completed updating config"),
    query(CONFIGS, DESCRIBE),
)
