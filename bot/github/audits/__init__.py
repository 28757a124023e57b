"""Audits of GitHub settings that keep a queue from working.

`facts.py` reads everything once, `audits.py` runs the audits. Each has its section in
docs/reference/doctor.md by its id, and says something also when there is nothing to mend.

Example: `rules.strict_checks` yields an error if the branch only takes pull requests that contain
its newest commit, with the ruleset in which to turn that off.
"""
