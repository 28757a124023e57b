"""The sandbox by itself: each row of its behavior table, clause by clause.

`client.py` is a bare HTTP client of the API; `conftest.py` gives a manual sandbox with one
repository, and a receiver of its webhooks. Nothing here uses the adapter.
"""
