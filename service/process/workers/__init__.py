"""Loops that do what is due, again and again.

Every worker has `drain()`, which does what is due and returns whether there was anything, and
`run()`, which waits for a wake-up or a short time and then drains. Tests call only `drain`.
Workers select rows by state and time, so a lost wake-up costs a minute at most and a lost process
costs nothing. A flow looks when its topic is woken, when the next row is due, and in any case every
five seconds, in case another process has stored one; every minute where no other process can.

`flows.py` lists the rows that `flow.py` claims and carries out concurrently, so that a slow or
broken row delays no other: deliveries, in order within a repository; effects, with control
actions in order per run and one landing per queue; artifacts of CI, with a limit of their own so
that a large archive delays no landing; and notifications, with a limit of their own so that a
slow receiver delays no queue.

`loops.py` has the loops driven by time: timers of queues, sweeps that read the provider again,
housekeeping, and heartbeats where processes share a database.

`supervisor.py` runs all of them in one task group; a loop that crashes starts again after 1, 2,
4 … 60 seconds. Only `guard.py` catches every exception.

Worked example. A turn has committed a `BuildTestBranch` and woken the topic of its lane. The flow
of effects marks the row sent, performs it, and settles it as done. If the process had died in
between, the next start, or another live process, would find the row `sent`, mark it `unknown`,
and read it back from the provider.
"""
