"""The schema's history, run by `migrate.py` when the store is opened.

One file in `versions` for each revision, `NNNN_name.py`. Each is rerunnable after a kill
anywhere because it is one transaction, and says in full what it creates: it may not read the
present tables. Version N of the program runs on the schema of N+1: a column is dropped one
release after its last use. A released revision is never edited.

Adding one: write the file, append its number to `REVISIONS` in `migrate.py`, change the
tables. Tests hold the tables equal to what the revisions make, on both databases.
"""
