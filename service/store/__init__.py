"""What outlives the process, and the only package that speaks SQL.

*Transactions.* `database.Store.run(fn, …)` is one write transaction, `read` one read-only
snapshot. `fn(session, …)` is a plain function on one of the store's own threads: it cannot
await the world, and may be run again from the start, so it changes nothing but rows. The
`session` is SQLAlchemy's Core connection, valid for the call alone. Store functions take and
return values, never rows; many rows go as one `executemany`, very many as one text
(`bulk.py`), and what runs often is a statement built once at import.

*Two databases, one schema.* On SQLite (`sqlite.py`) one writer thread runs waiting functions
each in a savepoint and lets them share a commit; four readers have connections that cannot
write. On PostgreSQL (`postgresql.py`) the same functions run on a pool. Nobody else asks
which it is. PostgreSQL's upsert stands for both: the two compile to the same text.

*The queue as a value.* `queues.load` reads one `MergeQueue`; `queues.save` writes what differs
between the value before and after, told apart by identity first (`changes.py`), and names the
version it read: another writer's change makes it raise `Stale`. What has left the value stays
as rows, read by `runs.py`, and by `history.py` as the past. `cache.py` keeps the newest committed
values.

*In, out, and what happened.* `inbox.py` keeps deliveries until worked off, in order of their
lane. `outbox.py` keeps effects: they are written in the transaction that decides them and
leave it only when settled. `journal.py` and `audit.py` are appended to and never changed.
`landings.py` has the permits.

*Shape.* `tables/` are the tables, `types.py` their column types, `codec.py` and `rows.py` the
bridge to dataclasses, `records.py` values that no other floor has. `migrate.py` and
`migrations/` bring a database to the present schema, `retention.py` forgets.

A worked example. A turn on queue 7 at version 41 changes one entry and asks for a test
branch. `run_kind("turn", …)` hands it to the writer: `head_of` says 41, the cache has that
value, the engine steps; `save` updates the queue where version is 41, one row of `entry` and
inserts one of `run` with its members; `journal.append` and `outbox.append` add rows. Two
other functions waited: all three share one commit, then their callers go on.
"""
