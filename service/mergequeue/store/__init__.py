"""Queues, entries, test runs, the journal and landings in the database.

`queues.load` reads one `MergeQueue`; `queues.save` writes the difference between the value before
and after, and names the version that it read: if another writer was faster, it raises `Stale`.
Entries and runs that have left the queue stay as rows, read by `runs.py` and `history.py`.
`cache.py` keeps the newest committed values. `landings.py` has the permits. The tables are in
`tables_*.py`.
"""
