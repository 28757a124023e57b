"""A story played for whoever wants to see the queue work, without GitHub and without trust.

`headgate demo` raises two servers on this machine, the sandbox and the service, which meet
over HTTP only. In the sandbox stands the repository `octo/widgets` with eleven pull requests;
its CI really runs the repository's own tests. People comment `/merge`, and what happens is told
line by line. At the end the outcome is proved.

`story.py` is the play as plain values: files, pull requests, what shall become of each.
`stage.py` raises the servers and seeds the sandbox. `scene.py` plays: it comments as people do
and watches the service's API, nothing else. `proofs.py` is the unbelieving spectator: it reads
the sandbox's bare repository with the `git` command alone and asks whether what landed is what
was tested. It never sees our database. `report.py` says the outcome in words and as JSON, and
`run.py` is the whole evening.

A worked example. Pull requests 1 to 5 are commented on in a row. The first comment makes the
queue. 1 to 4 are tested at the same time, each on top of those ahead; 5 changes the same lines
as 1 and waits. 3 breaks a test: it fails once 1 and 2 are decided, and 4 is tested anew without
it. 5 conflicts with what 1 has made of `main` and leaves. While 6 is being tested, 7 comes with
`/merge --priority=urgent`, goes first, and 6 follows on top of it.
"""
