"""What can be asked of test health, one file per subject.

`uploads.py` takes an upload in: its class (`upload_class.py`), its tests (`upload_names.py`), its
evidence (`upload_evidence.py`), its answer (`upload_answers.py`). `judging.py` decides in the same
transaction which tests are healthy, flaky or broken. `collecting.py` fetches results that CI left
as artifacts. `lists.py`, `details.py`, `overrides.py`, `settings.py` and `tickets.py` serve the
API.
"""
