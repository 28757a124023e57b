"""Simulate a queue: the real engine in virtual time over known submissions.

Theory of operation. A `History` (`history.py`) says what was submitted when, what each change
does to the tests, and how long tests take. `replay.py` drives `mergequeue.engine.step` over it:
it submits, answers builds and landings at once, gives CI's result after its time, wakes the
engine when it asked to be woken, and counts (`figures.py`). It has no rule of a queue of its
own: whatever the engine plans (batches, probes, hedges, lanes) appears as test branches to
build, runs to retire and positions to land, and is answered as such. `world.py` is the
world outside: a target branch whose trees are sums of changes, and a CI with so many workers.

Histories come from three places: `past.py` reads what a queue's own entries and runs say,
`table.py` a table of test runs, `stream.py` makes one up from a seed.

What is left out, on purpose: times when the queue was paused or held, pushes of others to the
target, drafts and reviews. A submission arrives when it was first ready; everybody answers.
The same history, settings and seed always give the same figures, on every machine.

Worked example. Pull requests 1 and 2 arrive, 1 breaks the tests. With two slots the engine asks
for r1[1] and r2[2 on 1]. Both trees contain 1, so both fail after their time: 1
fails again in the run that confirms it and is FAILED, 2 is tested again on the tip and merges.
Figures: 4 runs for 1 merge, 1 restart, 1 failed.
"""
