"""Operations on merge queues, one file per subject.

An operation is a coroutine whose first argument is the `Runtime`. It reads the provider
outside any transaction, asks the queue in one turn, and returns a frozen view. The API, the
command line and the workers call operations and nothing below them.

Four kinds of transaction carry the work (docs/design/transactions.md 2): *accept* stores a delivery
before it is answered; a *turn* takes inputs through the engine and writes rows, journal, outbox and
the settled delivery together; *permit* opens one landing; *settle* keeps the outcome of one effect.
No transaction spans a call to anyone.

Worked example, a comment `/merge`. The provider's translator turns the delivery into the signal
`Asked`, and `comments.answer_comment` reads the author's access level and the pull request, checks
both and runs the command: `comment_commands.carry_out` calls `pull_requests.submit_fetched`. That
asks the queue in one turn, whose outbox has `BuildTestBranch` and a `Tell`. `building.py` makes the
test branch and gives the queue `TestBranchBuilt`. A `CheckReported` signal makes
`reconcile.read_checks` read the commit's reports; the turn decides; `landing.land` takes a
permit, sends one call, reads back, proves, and reports `Landed`.

Reports reach a queue only through `turn.take`, commands through `turn.ask`.
"""
