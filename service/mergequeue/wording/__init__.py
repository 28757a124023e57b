"""What people read: comments, check runs, replies, and the sentences of the API.

Pure functions from values to text. Nothing here decides, reads a clock or calls anybody:
`now` comes in, and the same value gives the same text to every surface.

A sentence is a `Phrase` (phrases.py): words of our own, and between them texts of others,
numbers of pull requests and links, each kept as what it is. It is written out twice, as
Markdown for comments and check runs (`markdown.markdown`) and as plain text for the API and
for titles (`markdown.plain`). A foreign text can only enter as an argument of `phrase`, and
an argument is always a code span: the way that is easy to write is the way that is safe.

Which text belongs to a reason, a hold, a cause or a condition stands once:

    readiness.py    what a pull request needs before it may enter
    reasons.py      why an entry stands where it stands
    endings.py      why it left: failed, removed, merged; and what to do next
    refusals.py     why a command was not taken
    holds.py        why the queue stands still
    causes.py       why a test run did not succeed
    conditions.py   what an entry still waits for
    upcoming.py     what has to happen next for it
    unclear.py      why a command line was not understood
    failed_tests.py which tests failed, and what they were before

and is put together for a surface by `comment.py` (the status comment and the failure
comment), `check.py` (the check run), `replies.py` and `queue_replies.py` (answers to commands)
and `history.py` (events of the journal). `view.py` is what the operations fill in.

Rules of every text that goes to the provider (a test holds all of them to it): no bare
number of a pull request, for it would leave a line in that pull request; no `@` but where
somebody is meant to be notified; no image; no HTML but comments, `details`, `summary` and
`sub`; links only to the provider's host or ours.

Worked example. Pull request 3 is removed because `test` failed. Its entry says FAILED,
`required_status_failed`, and in its detail the check with its page. `endings.why` makes
the phrase "`test` failed" of that; the comment writes "### ❌ `test` failed · removed from the
queue", the check run is titled "test failed · removed from the queue", the API says "test
failed." and none of the three knows the words.
"""
