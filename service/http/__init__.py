"""The HTTP interface of docs/design/http.md: bytes in, one operation, bytes out.

A request takes one way, `app.py`, and each station may refuse it, in the order that
docs/design/http.md 1 fixes: the path and method (declared at each handler, see `route.py`), the
token and its role (`auth.py`), the headers that say how the body is written, its size and speed
while it arrives (`limits.py`), its syntax (`strict_json.py`), every field by itself (`models/`).
Only then is a handler called. It finds what the request names, asks one operation, and makes the
answer's model of the frozen view that it gets. Whatever is refused on the way is an error of
`service/errors.py` or of a provider; `errors.py` has the one table that gives it a status, a code
and a body. Nothing below this package knows HTTP.

Clients poll: handlers may keep encoded answers (`Caches` in `callers.py`). `replies.py` makes the
responses of successes and refusals.

Worked example. `POST /v1/getQueue` with `{"repo": …, "targetBranch": "main"}`. The route says
POST, role read, model `GetQueue`. The token's caller comes from memory. The body is small and
arrived with the head, so no deadline is set up; `json` reads it with hooks that refuse duplicate
keys, the model checks the fields. `queues.get` finds the queue, 404 with the branches
that have one if there is none, and reads its value; the encoded answer is kept until that
value changes. A body of 20 MiB
for `/setImpactedTargets` goes the long way: it waits for a place among the large ones, is
counted and timed as it arrives, and is parsed on a thread.

`health.py` holds what tells a balancer whether to send requests here; until the recovery
after a start is over, every endpoint but the status ones answers 503 `recovering`.
`connections.py` bounds what arrives before a handler runs: how many connections, how long a head
may take, and what is answered when HTTP itself is broken.

May not enter: SQL, rules of the queue, the name of any provider.
"""
