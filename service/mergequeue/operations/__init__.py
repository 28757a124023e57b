"""Operations on merge queues, one file per subject.

An operation is a coroutine whose first argument is the `Runtime`. It reads the provider
outside any transaction, asks the queue in one turn, and answers with a frozen view. Faces
(API, command line) and loops (workers) call operations and nothing below them.

Four kinds of transaction carry the work (ARCHITECTURE.md 5): *accept* stores a delivery
before it is answered; a *turn* takes inputs through the engine and writes rows, journal,
outbox and the settled delivery together; *permit* opens one landing; *settle* keeps the
outcome of one effect. No transaction spans a call to anyone.

Worked example, a comment `/merge`. `deliveries.take_next` reads the stored body, the
provider's translator says `Asked`, `signals.receive` hands it to `asking.answer`, which reads
the person's access and the pull request afresh and calls `pull_requests.submit`. That asks
the queue: one turn, whose outbox holds `BuildTestBranch` and a `Tell`. `actions.perform`
makes the test branch and gives the queue `TestBranchBuilt`. A `CheckReported` signal has
`reconcile.read_checks` read the commit's reports; the turn decides; `landing.land` takes a
permit, sends one call, reads back, proves, and reports `Landed`.

Reports reach a queue only through `turn.take`, commands through `turn.ask`.
"""
