"""Measure Headgate, and write the figures for Prometheus (docs/reference/metrics.md).

A turn yields facts (`facts.py`): something happened, and perhaps took so long. The store adds
facts up as cells, one a bucket, and remembers those of the last hour one by one; so a page is
never made by reading history. From cells and from the present value of each queue the
operations make samples, and `queue_families.py` says which family shows which of them under
which name. `exposition.py` writes the text. `process_families.py` keeps what one process counts of
itself in memory; nothing of a tenant enters there.

Names, labels and texts of families are a contract (docs/reference/metrics.md): who reads them has
dashboards that no test of ours knows. No queue's rules, no database and no clock in here.
"""
