"""A play for whoever wants to see the queue work, without GitHub and without trust.

`headgate demo` raises two servers on this machine, the sandbox and the service, which meet
over HTTP only. In the sandbox stands the repository `octo/widgets` with four target branches and
nineteen pull requests; its CI really runs the repository's own tests. People comment `/merge`,
and what happens is told line by line. At the end the outcome is proved.

`widgets.py` is the repository as plain values, `story.py` the play: a story for each branch, its
pull requests, what shall become of each. `stage.py` raises the servers and seeds the sandbox.
`scene.py` plays all stories at the same time: it comments as people do and watches the service's
API, nothing else. `shown.py` says of each story what it showed, and what is missing. `proofs.py`
is the unbelieving spectator: it reads the sandbox's bare repository with the `git` command alone
and asks whether what landed is what was tested. It never sees our database. `report.py` says the
outcome in words and as JSON, and `run.py` is the whole evening.

The worked examples, one a branch:

`main`: 1, 5, 2, 3 and 4 are commented on in a row. The first comment makes the queue. Each is
tested on top of those ahead; 5 changes the same lines as 1 and conflicts with what 1 has made of
`main`. 3 breaks a test: it fails once 1 and 2 are decided, and 4 is tested anew without it. While
6 is being tested, 7 comes with `/merge --priority=urgent`, goes first, and 6 follows on top of it.

`release`: 12 to 15 make one batch, which fails. Half of it passes and lands, then 14; what is
left is 15. It fails once more and is blamed alone.

`lanes`: CI says that 16 and 17 touch different things. Both are tested at once on the same tip.
17 is done first and lands; 16 lands later beside it, as the same change on another tree.

`optimistic`: 18 is good and its test is flaky, so it fails. 19 stands on top of it and passes,
which clears 18; the two land as one unit.
"""
