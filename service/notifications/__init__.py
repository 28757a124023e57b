"""Outgoing webhooks: events, signatures, allowed addresses and delivery.

A *notification* is one webhook message, an *attempt* one try to deliver it to one endpoint. A
message keeps its id; each attempt has its own time and signatures.

    messages.py       the events, which of them an endpoint selects, and the bodies; pure
    slack.py          the same messages as one text for Slack; pure
    signing.py        secrets, and the headers of one attempt (Standard Webhooks)
    schedule.py       when an attempt is repeated, and when an endpoint is disabled; pure
    addresses.py      which addresses may be called; pure
    sender.py         one attempt over the network
    endpoints.py      create, list, update and delete endpoints
    notifications.py  store, send, retry, list and replay messages

A message is stored in the transaction of its event, sent later by a worker, and settled in
another transaction, so that a slow receiver delays no queue.

The sender resolves the name itself, because the address that was checked must be the one that is
connected to: a second lookup may answer differently.

Worked example. Pull request 3 fails. The turn stores a message `msg_…` of the type
`pull_request.failed`, and one open attempt for each enabled endpoint of the organization that
selects it. The worker claims an attempt, resolves the endpoint's host to 203.0.114.7, which is
public, signs the bytes with the endpoint's secret, posts them to exactly that address, reads 503
with `Retry-After: 60`, and settles: this attempt failed, the next one is due in five minutes.

See docs/design/notifications.md 1.
"""
