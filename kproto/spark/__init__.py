"""Offset logs of any size as tables, audits and a report, on Spark (extra ``kproto[spark]``).

`session` makes a session that can read logs; `register` adds that to one that is there. Nothing here imports PySpark
before it is called.
"""

from kproto.spark.session import NoJava, one_line, register, session

__all__ = ["NoJava", "one_line", "register", "session"]
