"""Transactions, the inbox, the outbox and the schema.

*Transactions.* `database.Store.run(fn, ...)` is one write transaction, `read` one read-only
snapshot. `fn(session, ...)` is a plain function on one of the store's own threads: it cannot
await, and it may run again from the start, so it changes nothing but rows. `session` is a
SQLAlchemy Core connection, valid for the call alone. Store functions take and return values,
never rows.

*Two databases, one schema.* On SQLite (`sqlite.py`) one writer thread runs waiting functions each
in a savepoint and lets them share a commit; four readers have connections that cannot write. On
PostgreSQL (`postgresql.py`) the same functions run on a pool. No other module asks which one it
is. PostgreSQL's upsert serves both: the two compile to the same text.

*Inbox and outbox.* `inbox.py` keeps deliveries until they are processed, in order of their lane.
`outbox.py` keeps effects: they are written in the transaction that decides them and leave it only
when settled.

*Schema.* Tables are SQLModel classes in `tables_*.py`, here and in the `store` of each capability.
Every table of a tenant has `org_id`. Rows of `inbox` belong to no tenant until they are translated.
Instants are `Utc`. Columns without a filter are JSON. `lower(name)` is stored beside a name that is
matched in any case, because the databases disagree about lower case beyond ASCII. `types.py` has
the column types, `codec.py` the bridge to dataclasses. `migrate.py` and `migrations/` bring a
database to the present schema.

Example. A turn on queue 7 at version 41 changes one entry and asks for a test branch.
`run_kind("turn", ...)` hands it to the writer: the cache has version 41, the engine steps, `save`
updates the queue where version is 41, one row of `entry`, and inserts one of `run` with its
members; the journal and the outbox get their rows. Two other functions waited: all three share
one commit, then their callers go on.
"""
