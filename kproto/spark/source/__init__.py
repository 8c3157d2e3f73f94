"""Spark's data source ``kproto``: ``spark.read.format("kproto")`` and ``readStream`` over directories of logs.

`options` declares the options, `plan` cuts a log into tasks, and Spark calls `batch` and `stream`. Workers import this
package, so it has to be installed wherever they run.
"""
