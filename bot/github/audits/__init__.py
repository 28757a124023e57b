"""Audits of GitHub settings that keep a queue from working, one per module.

`facts.py` reads everything once, `audits.py` runs the audits. A module has an ID (its section in
docs/reference/doctor.md), FINE (what it says when there is nothing to mend) and `decide`.

Example: `strict_checks.decide(facts)` yields an error if the branch only takes pull requests that
contain its newest commit, with the ruleset in which to turn that off.
"""
