"""The merge queue and the test-health service, independent of any Git host.

One package per capability:

- `mergequeue`: what lands, when, and why not.
- `testhealth`: which tests fail without a reason in the code.
- `evidence`: what the two tell each other; the only package that knows both.
- `notifications`: outgoing webhooks.
- `accounts`: organizations, repositories, API tokens, roles, audit.
- `provider`: the interface to whatever hosts the repositories.
- `http`: limits, request parsing, error answers, the OpenAPI document.
- `dashboard`: pages for people.
- `parsers`: the processes that read foreign bytes, and the share of each tenant.
- `database`: transactions, inbox, outbox, migrations.
- `process`: the parts of the running process: signals, effects, workers, metrics.
- `metrics`: which figures there are, and Prometheus' text format.
- `text`: Markdown escaping, phrases and times, for every text that people read.

Inside a capability `api` calls `operations`, and operations call `store` (SQL), `wording`
(sentences) and a pure core (`mergequeue.engine`, `testhealth.detector`, `testhealth.reports`).

The engine is pure and works on rows with an inbox and an outbox. A fact from outside is stored
first (inbox). It becomes an input of one queue and starts one *turn*: a single transaction that
loads the queue as one value, asks the engine for the next value, and saves the changed rows, a
journal of what happened and an outbox of what must be done. Effects run after the commit, and
their results come back as inputs. The engine plans from the whole state each time, so a lost,
repeated or late fact changes when something happens, not what.

Example. Someone comments `/merge` on pull request 3. The delivery is an inbox row. The inbox
worker translates it to the signal "asked", operations read from the provider whether the person
may merge and which checks the branch requires, and `Submit` becomes an input of the queue. The
turn adds an entry, starts a test run, and leaves "build this test branch" in the outbox. The
outbox worker has the provider build it and reports the commit. Checks on that commit arrive the
same way; when the required ones have passed, the engine asks for the landing.
`mergequeue/operations/landing.py` takes a permit, lands, reads the branch back and compares its
tree with the tested one. Only then is the entry MERGED.
"""
