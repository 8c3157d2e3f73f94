"""What clients sent and received: counted per client for the report, and kept request by request for tests."""
