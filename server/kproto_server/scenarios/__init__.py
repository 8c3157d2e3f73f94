"""Failure scenarios for a consumer's committed offset: missing or invalid offsets, produced on demand for any client.

`failure_scenarios` lists the scenarios, `scenario_topic` applies them to a broker, `runner` runs a client in one,
`consumer_trace` derives the client's positions from its requests, `text_report` and `html_report` present the results.
"""
