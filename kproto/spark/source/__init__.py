"""Spark's data source ``kproto``: ``spark.read.format("kproto")``, and ``readStream``, over directories of logs.

`options` says what can be asked for, `plan` cuts a log into tasks, `batch` and `stream` are what Spark calls. Workers
import this package: it has to be installed wherever they run.
"""
