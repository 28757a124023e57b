"""Operations on tests and their results.

`ingest.py` takes an upload in: `classify.py` says whose results it holds, `identify.py` which
tests it has, `findings.py` what it says of them; `judge.py` judges these in the same transaction,
`answers.py` answers, and
`noting.py` notes facts of single tests. `remove.py` removes an upload, `count_days.py` counts days
that are over, `lists.py` lists tests, `sweeps.py` does what time alone brings.
"""
