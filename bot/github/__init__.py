"""GitHub behind the provider port: what it sends us, what we ask of it, and its words.

Inward. GitHub calls `/webhooks/github`. `webhook.py` checks the signature over the raw bytes and
hands the delivery to the service, which stores it before it is answered. Later `translate.py`
looks (event, action) up in one table; `payloads.py` reads the few fields we use; a comment
passes `bot/commands.py`. What comes out are signals, hints that something may differ.

Outward. `provider.py` implements `service/provider/port.py`. Each verb stands in a file of its
own: `pull_requests`, `people`, `protection`, `checks`, `commits`, `testbranches` with `scratch`
and `refs`, `landing`, `notices`, `ci_runs`, `installations`. They speak through a `Line`, one
repository at one priority; below it `client.py` takes a token from `auth.py` and a turn from
`pacing.py`, sends through `wire.py`, and makes of the answer a value or an error by the table
in `limits.py`. `answers.py` and `graphql.py` read what comes back.

Who may repeat what. A read is repeated by the client. A write is sent once; when its answer is
lost, `OutcomeUnknown` says so. Building, discarding and saying read back by themselves and go
on, because each of them finds what it made before: a branch by the commits on it, a comment by
its hidden marker, a check run by its external id. Landing never does: `merged` and `advanced`
answer what happened, and the service decides.

What is kept. Commits, because they cannot change. Rules of a branch for five minutes. Tokens,
in memory, until shortly before they end. Never: tips, checks, facts of a pull request.

Worked example. `build` for pull request 3: `POST /git/refs` makes the scratch branch at the
target's tip, `POST /merges` merges the head by its sha, the rename publishes the branch under
the name CI listens to, one read confirms where it points, and `POST /pulls` opens the draft
that starts `pull_request` workflows. After a crash the same call finds the scratch branch (the
name is taken), walks its first parents back to the base, compares each second parent with the
heads asked for, and goes on from there; anything else there is `Refused(NAME_TAKEN)`.
"""
