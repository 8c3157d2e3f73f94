"""Group loading: read the log of an offsets partition back into offsets and groups (LF-30 to LF-38).

Theory of operation. `load.PartitionLoad` goes through the batches of a log in steps of a few milliseconds, so that the
broker serves other partitions in between. The modules, in the order in which a batch passes them::

    load               the batches of the log, one after the other, and the steps
    repeated_commits   fast path: keeps only the newest of the commits that come again and again, undecoded
    batch_templates    which bytes two commits of the same partitions have in common
    replay             the reference implementation: the effect of each record on offsets and groups
    fast_decoder       fast path inside of `replay`: decodes the common form of an offset record
    restored_groups    collects the records of groups, and creates the groups at the end
    sessions           starts the sessions of the members of loaded groups

Both fast paths leave everything unusual to the reference implementation (D13: a fast path is never semantics);
``decodes_all`` switches them off, and tests compare the results.

What they earn (CPU time for each record, a log of 50,000 records in commits of 10 partitions that come 50 times): 17
microseconds with the reference implementation alone, 5 with the fast decoder, 0.24 with repeated commits too. In
commits of one partition that come only once: 31, 26 and 19.
"""
