"""Uploads, attempts, sets of passed tests and what is derived from them, in the database.

An upload is written once. Its passed and skipped tests are kept as sets, its failed attempts as
rows. Days of a test, its state and the lists are derived from them. The tables are in
`tables_*.py`.
"""
