"""Loops that keep the service moving: what is due is done, again and again.

Every worker has `drain()`: do what is due and say whether there was anything; and `run()`:
wait for a wake-up or a short time, then drain. Tests call only `drain`. Nothing is
remembered between rounds: rows are taken by state and time, so a lost wake-up costs two
seconds and a lost process nothing.

`inbox` takes deliveries in order within a repository. `outbox` performs effects: control
actions in order per run, landings of a queue one at a time, notices when due; and collects
what CI left, in places of its own, so that a large archive delays no landing. `notifications`
tells endpoints, in places of its own, so that a slow receiver delays no queue. `ticks` lets
time pass for queues whose clock has come. `sweeps` read the provider again, on a clock; those
that may take long do so apart from those that are awaited. `housekeeping` removes what nobody
needs any more, and tells queues that plan by it how likely their pull requests fail. `presence`
says that this process lives, where others share its database, and takes back what the dead had
claimed.

`flow` takes rows up side by side for these three, so that a slow or broken one holds up no
other. `supervisor` runs all loops in one task group; one that crashes is started again after
1, 2, 4 … 60 seconds. Everything is caught in `guard`, and nowhere else.

Worked example. A turn has committed a `BuildTestBranch`. It woke the topic `outbox`; the
outbox worker marks the row sent, performs it, and settles it done. Had the process died in
between, the row would be found `sent` at the next start, or by another process that lives,
become `unknown`, and be read back.
"""
