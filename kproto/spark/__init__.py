"""Offsets logs of any size as tables, audits and a report, on Spark (extra ``kproto[spark]``).

`session` returns a Spark session that reads logs; `register` adds the data source to an existing session. Importing
this module does not import PySpark.
"""

from kproto.spark.session import NoJava, one_line, register, session

__all__ = ["NoJava", "one_line", "register", "session"]
