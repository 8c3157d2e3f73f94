"""The report: the results of the jobs on one self-contained page of HTML with charts.

`build` runs the jobs, `model` has their results, `page` writes the page and `charts` draws. Only `build` imports Spark.
"""
