"""The schema's history, run by `migrate.py` when the store is opened.

One file in `versions` for each revision, `NNNN_name.py`. Each is rerunnable after a kill
anywhere because it is one transaction, and says in full what it creates: it may not read the
present tables. A released revision is never edited.

A program also runs on a newer schema if `RUNS_FROM` of the newer program, which each upgrade
stores, is a revision that the older one knows (docs/design/transactions.md 10). So a revision adds:
tables, and columns that are nullable or have a default of the server. A column is dropped, and a
value that older programs cannot read is stored, one release after its last or before its first use;
then `RUNS_FROM` is raised.

Adding one: write the file, append its number to `REVISIONS` in `migrate.py`, change the
tables. Tests hold the tables equal to what the revisions make, on both databases, and keep what
programs since `RUNS_FROM` use.
"""
