"""The merge queue as a pure engine: what happens next, from nothing but a value and an input.

Theory of operation. A queue is one frozen value (`model.py`): entries (submissions of pull
requests), runs (tests of entries on test branches), the target's tip, holds, memory. The one
door is `engine.step(queue, input, now)`. It answers with the next value, with actions for the
shell ("build this test branch", "land this commit"), and with events for everybody. There is
no I/O, no clock and no chance in here: time and facts come in, ids are made from the queue's
own id and a counter, so the same inputs always give the same value.

One step. `apply.py` finds the function for the input; it changes only what the input names, or
refuses. Then `plan.py` runs the passes over the state alone, again and again until nothing
changes: who is ready (`readiness`), what do the reports mean (`verdict`) and what follows from
that (`settling`, `breaker`), who is blamed (`conviction`), whose base is not true any more
(`bases`, `dropping`), what lands (`landing`), what starts (`starting`). Because planning reads
state and not history, a lost, doubled or late input changes when something happens, not what.
Last, `invariants.py` checks what must hold, and raises if it does not.

`draft.py` is the only place where a state changes: it looks the step up in `states.py`, takes a
reason, and leaves an event. `places.py` is its index, so that a step costs what it touches.

Order. Entries that were put into a run form the *line*, by rank. Those that wait come behind
it, by priority and by when they were first ready. A run of an entry is built on its *base*: the
tip, and all entries of the line ahead that are *expected* to land. A base *holds* while the
target received only what the base predicted, and the rest of it is still what is ahead. So a
landing that was predicted restarts nobody, and everything else restarts exactly those who were
built on what did not come true. A failed entry is *out*: nobody builds on it, and it is judged
only when everything below it has passed, as the only unproven change of the tree that failed.

A worked example, two slots. 1 and 2 are submitted: run 1 tests 1 on the tip, run 2 tests 2 on
the tip with 1. Run 2 passes: 2 waits for 1. Run 1 fails: 1 stood on the tip alone, so it is
FAILED; run 2's base is gone, 2 is PENDING again with `ahead_failed` and starts anew on the tip.
Had run 2 failed first, 2 would have left everybody's base at once and waited, unjudged, for
what becomes of 1: had 1 passed, 2 would have been FAILED; as 1 failed, 2 is tried again.

Only one line (mode SINGLE) and one entry a run exist; settings for more are refused by
`config.not_available_yet`. A run holds a tuple of entries, and `bases.ahead` alone says who
meets whom, so that neither lanes nor batches need another shape.
"""
