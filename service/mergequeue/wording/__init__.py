"""Texts for people: comments, check runs, replies, and the sentences of the API.

Pure functions from values to text. They read no clock: `now` is an argument, and the same
value gives the same text on every surface.

A sentence is a `Phrase` (`service/text/phrases.py`): our own words, with foreign texts, pull
request numbers and links between them. It is rendered as Markdown for comments and check runs
(`markdown.markdown`) and as plain text for the API and for titles (`markdown.plain`). A foreign
text can only enter as an argument of `phrase`, and an argument is always a code span: the easy
way is the safe way.

The sentences about reasons, holds and causes are templates in their records
(`service/mergequeue/reasons`); these modules choose and fill them:

    readiness.py    what a pull request needs before it may enter
    reasons.py      why an entry stands where it stands
    endings.py      why it left the queue, why its test run failed, and what to do next
    places.py       what the places of these templates stand for
    reporters.py    why reports of others and skipped checks do not count
    refusals.py     why a command was refused, or cannot be run
    holds.py        why the queue is stopped
    conditions.py   what an entry waits for, and what happens next
    failed_tests.py which tests failed, and what they were before

The surfaces put them together: `notices.py` (the status comment, the failure comment and the
check run) with `bodies.py`, `replies.py` (answers to commands) and `history.py` (events of the
journal). The operations fill in `situation.py`.

Rules for every text that goes to the provider (a test checks all texts): no bare pull request
number, because it would add a line to that pull request; no `@` except to notify a person; no
image; no HTML except comments, `details`, `summary` and `sub`; links only to the provider's
host or ours.

Worked example. Pull request 3 is removed because `test` failed. Its entry says FAILED,
`required_status_failed`, and its detail names the check with its page. `endings.why` returns
the phrase "`test` failed"; the comment starts with "### ❌ `test` failed · removed from the
queue", the check run has the title "test failed · removed from the queue", the API says "test
failed.".
"""
