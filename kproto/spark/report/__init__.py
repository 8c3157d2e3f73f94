"""The report: what the jobs found, as one page of HTML with charts that needs nothing else.

`build` asks the jobs, `page` writes the page, `charts` draws. Only `build` knows Spark.
"""
