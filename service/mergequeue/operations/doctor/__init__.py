"""Find what keeps a queue from working, as far as it can be told before a pull request is tested.

`doctor.py:examine` reads everything once, runs the audits of this package and those of the
provider, and orders the findings. `checks.py` and `queue.py` have the audits, functions of
`QueueFacts`.
`dry_test.py` shows CI a test branch that changes nothing, and says which checks report on it.

Example: `main` requires `unit`, and none of the last five test branches has a report of that name.
`checks.checks_on_test_branches` yields an error that names the trigger to add.
"""
