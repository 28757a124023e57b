"""Outgoing webhooks: what is told, how it is signed, and to whom it may be sent (API.md 11).

The words here: a *notification* is one webhook message, an *attempt* one try to deliver it to
one endpoint. A message has one id for ever; each attempt has a time and signatures of its own.

    events.py      the closed list of event names, and which of them an endpoint wants
    payloads.py    from an event of the queue to the bodies that are sent; pure
    signing.py     secrets, and the headers of one attempt (Standard Webhooks)
    schedule.py    when the next attempt comes, and when an endpoint is given up; pure
    addresses.py   which addresses may be called at all; pure
    sender.py      one attempt over the network

Nobody here reads or writes a row. A message is written down in the transaction of what it
tells (`message_queue.py`), sent by a worker of its own, and settled in a transaction
again (`notifications/notifications.py`), so that a receiver, however slow, delays no queue.

Why a name is resolved here and not by the HTTP client: the address that was found acceptable
must be the one that is connected to. A name asked for twice may answer twice differently.

Worked example. Pull request 3 fails. The turn that says so keeps a message `msg_…` of the type
`pull_request.failed`, and one open attempt for each enabled endpoint of the organization that
wants it. The worker takes an attempt up, resolves the endpoint's host, finds 203.0.114.7 public,
signs the bytes with the endpoint's secret, posts them to exactly that address, reads 503 with
`Retry-After: 60`, and settles: this attempt failed, the next one is due in five minutes or so.
"""
