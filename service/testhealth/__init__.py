"""Test health: which tests fail without a reason in the code.

- `reports`: pure. Bytes of any report format to results, and who a result belongs to.
- `detector`: pure. Results to healthy, flaky or broken; what may be excused.
- `store`: uploads, attempts, sets of passed tests, counted days.
- `operations`: take uploads in, judge, quarantine, list, open tickets.
- `api`: endpoints, request models and answers.
"""
