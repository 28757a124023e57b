"""The tables, and the only classes with `table=True`.

One schema for SQLite and PostgreSQL. A row of the engine's values has the fields of the
dataclass under the same names plus the keys that only the store knows; `codec.py` holds the
two together. These classes do not validate when constructed and never leave the store: its
functions take and return values.

`base` is what all share, `access` tenants and their rights, `queues` the engine's state,
`deliveries` what comes in, goes out and has happened, `figures` what was counted of it,
`notifications` what others are told, `pull_requests` what is remembered of pull requests,
`repeats` what was answered to requests that may be sent again.

Every table of a tenant has `org_id`. Rows of `inbox` belong to nobody until translated. Ids
are counted by the database, but for entries and runs, which bring their own; there `no`
counts, so that what was created first is read first. Instants are `Utc`. What nobody filters
by is JSON. Partial indexes stand on the flags `live` and `is_open`: one spelling that both
databases recognize in a question.

Two spellings of one name: `lower(name)` is stored beside the name where names match in any
case, because the databases disagree about lower case beyond ASCII.

A changed table is a new revision in `migrations`; a test holds both equal.
"""
