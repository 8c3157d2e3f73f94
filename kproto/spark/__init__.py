"""Offset logs of any size as tables, audits and a report, on Spark (extra ``kproto[spark]``)."""
