"""The seam between the service and whatever hosts the repositories.

Outward stands `port.py`: the `Provider` protocol with every verb the service may use and
the values that go through it. Inward stands `signals.py`: what a provider can tell us.
`errors.py` names the ways in which a call can go wrong.

Two rules hold on both sides. A signal is a hint and a fresh read is the truth: with no
signal at all every pull request still lands, later. And a provider reports facts, the
service decides: no verdict, no retry budget, no state of a queue lives behind the port.

Nothing here knows an installation, a node id, a check suite or a workflow; ids are opaque
strings. `Runtime.providers` maps a host to its `Provider`; a second provider is a package
beside `bot/github` and an entry in the wiring, and no file of `service` changes.

Worked example. Someone comments `/merge` on pull request 3. The provider's translator
says `Asked(repo, 3, actor, ask, …)`. The service reads `pull_request(repo, 3)` and
`access(repo, actor, …)` afresh, decides, and asks the queue. A run is planned, so it calls
`build(...)`; the answer `Built` becomes a report to the queue. Later `CheckReported` says
"look again": the service reads `checks(repo, sha)`. When all required checks passed it
calls `merge(...)`, compares the `Merged` chain with what was tested, and calls `discard`.
"""
