"""Classic groups: conversations of members with a coordinator, recorded from real brokers and held with ours."""
