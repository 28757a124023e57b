"""The results that the merge queue and test health exchange; the only package that imports both.

The queue asks why a test run failed: `failed_checks.py` finds the uploads of the failed checks,
`failed_tests.py` reads the history of each failed test when the run began, and the answer
goes back to the queue as an input. `upload_completeness.py` lists what an upload lacks as a proof.
`links.py` passes new uploads to queues, also failures that arrive after a landing;
`revocations.py` finds passes that a later failure contradicts. `run_failures.py` lists the failed
tests for the comment on the pull request; `lost_reports.py` finds runs whose results never arrived.
"""
