"""`kproto conform client`: named cases for a client under test, each with its reference, and a verdict for each.

`cases` has the cases as data, `client_run` runs a program in one of them, `verdict` grades what was seen, the modules
``*_report`` write it.
"""
