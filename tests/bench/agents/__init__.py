"""A hundred scripted agents on one repository: what a merge queue makes of them.

`world.py` has the truth: pull requests, which of them clash, and the branch. `scripts.py` is how
agents and people behave: they open, submit, submit again, repair and rebase. `github_rules.py` is
GitHub's own queue as its documentation describes it, `queue.py` the engine. `simulator.py` plays
them against each other in virtual time; `figures.py` counts. `columns.py` names what is compared:
the same agents, with each guard of Headgate switched on or off. `real.py` plays the same script
against a running service, with real git.

docs/explanation/agents-benchmark.md says what is modelled and what is not.
"""
