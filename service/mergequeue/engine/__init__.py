"""The merge queue as a pure engine: what happens next, from nothing but a value and an input.

Theory of operation. A queue is one frozen value (`model.py`): entries (submissions of pull
requests), runs (tests of entries on test branches), searches for a culprit, the target's tip,
holds, memory. The one door is `engine.step(queue, input, now)`. It answers with the next value,
with actions for the shell ("build this test branch", "land this commit"), and with events for
everybody. There is no I/O, no clock and no chance in here: time and facts come in, ids are made
from the queue's own id and a counter, so the same inputs always give the same value.

One step. `apply.py` finds the function for the input; it changes only what the input names, or
refuses. Then `plan.py` runs the passes over the state alone, again and again until nothing
changes: who is ready (`readiness`), what do the reports mean (`verdict`) and what follows from
that (`settling`, `breaker`, `optimism`), who is to blame (`bisecting`, `proving`), whose base is
not true any more (`bases`, `dropping`), what lands (`landing`), what starts (`starting`, with
groups from `grouping`). Because planning reads state and not history, a lost, doubled or late
input changes when something happens, not what. Last, `invariants.py` checks what must hold, and
raises if it does not.

`draft.py` is the only place where a state changes: it looks the step up in `states.py`, takes a
reason, and leaves an event. `places.py` and `footing.py` are its indexes, so that a step costs
what it touches; they follow from the value and are rebuilt for one that was loaded.

Order. Entries that were put into a run form the *line*, by rank. Those that wait come behind
it, by priority and by when they were first ready. The line is drawn as a graph (`graph.py`): a
node is the batch of a live run or one placed entry, and stands on the nodes ahead that it meets,
directly or through others. In SINGLE mode any two meet; in PARALLEL mode those whose impacted
targets overlap, so that disjoint changes form lanes that land past each other. A run is built on
its *base*: the tip, and the nodes it stands on. A base *holds* while the target received only
what it predicted, or what meets nothing of it, and the rest of it is still what is ahead. So a
landing that was predicted restarts nobody, and everything else restarts exactly those who were
built on what did not come true.

Failure. A failed group is *out*: nobody builds on it, and it is judged when everything below it
has passed, as the only unproven change of a tree that failed. In a batch the culprit is searched
in cumulative parts of it on the same base; green parts are proven and land, unless that would
disturb somebody who went ahead. With optimistic merging a failed group is counted on a while
longer: a follower that passes on top of it clears it, and they land as one unit. With adaptive
batches (`screening`, `sizing`) risky entries are tried alone beside the line first, and a group
whose base was probably good is out at once and tried apart, so that nobody waits for a verdict.
Slots that nothing else can use hedge (`hedging`): they test a group on the base it would have if
somebody ahead failed.

A worked example, two slots. 1 and 2 are submitted: run 1 tests 1 on the tip, run 2 tests 2 on
the tip with 1. Run 2 passes: 2 waits for 1. Run 1 fails: 1 stood on the tip alone, so it is
FAILED; run 2's base is gone, 2 is PENDING again with `ahead_failed` and starts anew on the tip.
Had run 2 failed first, 2 would have left everybody's base at once and waited, unjudged, for
what becomes of 1: had 1 passed, 2 would have been FAILED; as 1 failed, 2 is tried again. In a
queue with optimistic merging and a depth of 1, run 1's failure would have waited for run 2, and
its pass would have landed both.
"""
