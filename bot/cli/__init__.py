"""The command line: `headgate COMMAND`.

Two kinds of commands live here. Those that run or look after this machine's service (`serve`,
`migrate`, `token`, `simulate`, `sandbox`, `demo`) build it through `bot/wiring.py` or open its
database. All others are clients: they speak HTTP to `/v1` of a running service like anybody's
script and know nothing of its database. `agents` serves the same requests as tools for coding
agents.

Who does what. `app.py` is the root and the only place where an error becomes a line on stderr
and an exit code. `exits.py` has the codes and the one exception for "say this, then end with
that". `destination.py` finds out which service, repository and branch is meant: option,
environment, git remote, in this order; the branch is that of the pull request's queue.
`client.py` sends requests, again and again while the service is away. `output.py` writes tables
for people or one JSON value for programs. Logs and progress go to stderr, so stdout holds the
answer and nothing else.

Exit codes are a contract with scripts: 0 done, 1 the asked-for thing is false, 2 usage,
3 not allowed, 4 not found, 5 service unreachable, 6 refused by a rule, 7 still queued when the
wait was over, 8 start refused, 130 interrupted. `test` and `upload` end by a rule of their own
(`bot/uploader/verdict.py`): mostly as the command did that they ran.

A worked example. `headgate land 3 --json` in a checkout reads the repository from the remote
`origin`, submits #3 (a second call joins the first), asks every few seconds how it stands, and
ends with its record, the outcome and the explanation as one object: code 0 when it merged, 1
when it did not, 7 when the time was up and it still waits in the queue.
"""
