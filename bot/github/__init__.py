"""GitHub behind the provider port: webhooks become signals, verbs become calls.

Inward. GitHub calls `/webhooks/github`. `webhook.py` checks the signature over the raw bytes and
hands the delivery to the service, which stores it before it answers. Later `translate.py` looks
(event, action) up in one table, reads the few fields that we use, and parses comments with
`bot/commands.py`. The result is signals: hints that something may have changed.

Outward. `provider.py` implements `service/provider/port.py`. Each group of verbs has a module:
`pull_requests`, `people`, `protection`, `checks`, `refs`, `testbranches`, `landing`, `files`,
`notices`, `tickets`, `ci_runs`, `installations`. They call through a `RepositoryClient`, one
repository at one priority. `client.py` takes a token from `auth.py`, waits for its turn in
`pacing.py`, sends through `wire.py`, and makes a value or an error of the answer by the table in
`limits.py`. `reading.py` and `graphql.py` read the JSON.

Retries. The client repeats a read. It sends a write once and raises `OutcomeUnknown` when the
answer is lost. Building, discarding and notices then read back and continue, because each finds
what it made before: a branch by its commits, a comment by its hidden marker, a check run by its
external id. Landing never repeats: `merged` and `advanced` answer what happened, and the service
decides.

Caches. Commits, because they cannot change; the rules of a branch for five minutes; tokens, in
memory, until shortly before they expire. Tips, checks and facts of pull requests are never cached.

Worked example. `gitbuild` builds test branches in a mirror, where it can. Without it, `build` for
pull request 3 is: `POST /git/refs` makes the scratch branch at the
target's tip, `POST /merges` merges the head by its sha, the rename publishes the branch under
the name that CI watches, one read confirms where it points, and `POST /pulls` opens the draft
that starts `pull_request` workflows. After a crash the same call finds the scratch branch (its
name is taken), walks its first parents back to the base, compares each second parent with the
requested heads, and continues from there; anything else there is `Refused(NAME_TAKEN)`.
"""
