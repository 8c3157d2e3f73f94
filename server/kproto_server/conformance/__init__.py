"""`kproto conform client` and `kproto conform broker`: named cases, and a verdict for each.

A client under test: `cases` has the cases as data, each with its reference, `client_run` runs a program in one of them,
`all_cases` runs it in many, and `verdict` grades what was seen. `reports` and `html_report` write the verdicts.

A broker under test: `broker_cases` has the requests, `broker_run` sends them, `broker_expectations` has what the
releases respond, and `broker_report` compares.
"""
