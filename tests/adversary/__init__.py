"""Attacks: ways to land what was not tested, to excuse what is broken, to stop the queue.

Purpose. Each test plays one attack from start to end against the real service and the sandbox,
and shows that it fails. Its name states the rule that the attack would break; its docstring
begins with `Hurts WHOM: how.` (tests/tidy checks that).

What landed is judged by `git` alone (judge.py): neither the service nor the sandbox is asked.

Files, by what the attacker wants:

- test_untested.py, test_stand_in_kinds.py: land a commit that no required check has tested.
- test_forgiveness.py, test_forgiveness_of_commands.py, test_forgiveness_of_tokens.py,
  test_reports.py: have a regression excused by the queue, by `headgate test`, by a token that any
  job holds, or by the way in which a runner writes its report.
- test_standstill_landing.py, test_standstill_rules.py, test_standstill_database.py,
  test_standstill_intake.py: stop the queue for others, by a pull request, by GitHub's rules, by
  the database, by what comes in.
- test_rights_targets.py, test_rights_uploads.py, test_rights_commands.py: change what one has no
  right to change.
- test_fresh_eyes.py: use facts, rules and words that changed after they were judged.
- test_budget.py, test_rights_budget.py: use up what everybody shares: memory, rate limits, time.

Worked example. A workflow skips draft pull requests. Its required check concludes `skipped` on
the test branch. The test comments `/merge`, lets the world settle, and asserts
`await landed_on(world) == []`.
"""
