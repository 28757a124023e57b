"""The auditor: values in, findings out. It does no I/O, and shares no rule with the engine.

`records.py` has what is audited: rows of one queue (`QueueRows`), the first-parent history of its
target (`History`), and what signed evidence says (`Statement`). `findings.py` has the rules, each
with a name and a sentence. `target.py` walks every landing through the history, `rows.py` looks for
rows that contradict each other, `statements.py` compares the evidence with both.

A finding is a FAULT (something is not as Headgate promises), UNKNOWN (this history cannot tell) or
a NOTE (worth knowing, nobody's fault: a push past the queue). For example: a landing whose commit
is not on the branch is the fault `landing_not_on_branch`.

`service/mergequeue/store/auditing.py` reads the rows, `bot/cli/auditing` the rest.
"""
