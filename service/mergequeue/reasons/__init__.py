"""One record for each reason, hold and verdict cause: all that Headgate knows and says of it.

    record.py       the shape of a record
    submitted.py … refused.py   the records of reasons, one file per family
    holds.py, causes.py         the records of holds and of verdict causes
    records.py      all of them by code

Records are data: a code, who must act, what the engine asks of it, and its sentences. They import
nothing but the vocabulary, so that the engine below the texts and the texts above the engine read
the same one. The engine reads who must act, the order and the like, and never a sentence.

A sentence is a template: `{prs|a PR ahead} failed` has the pull requests in the evidence, or the
words where there are none; `merged into {target}[ as {sha}]` ends early where no commit is known
(`service/text/phrases.py:filled`). `service/mergequeue/wording` knows the places of templates:
`reasons.py` those of reasons, `readiness.py` those of a need, `refusals.py` and `holds.py` theirs.

The enums of `engine/reasons.py` have the same codes in the same order; `make docs` writes them.

Worked example. `draft` is a record in `not_ready.py`: the author must act, its goal is "the PR is
marked ready for review". So `NOT_READY_ORDER` has it second, `explain` has it as a condition, the
checklist of the status comment names the goal, and `docs/reference/reasons.md` has its row. The
rule that gives it is in `engine/state/readiness.py`.
"""
