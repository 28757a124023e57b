"""What the merge queue and test health tell each other; the only package that knows both.

The queue asks why a test run failed: `failed_checks.py` finds the uploads of the failed checks,
`failed_tests.py` looks up what was known of each failed test when the run began, and the answer
goes back to the queue as an input. `upload_completeness.py` says what an upload lacks as a proof.
`upload_news.py` tells queues about new uploads; `revocations.py` and `late_failures.py` handle
failures that arrive after a pass or after a landing. `run_failures.py` lists the failed tests for
the comment on the pull request; `lost_reports.py` finds runs whose results never arrived.
"""
