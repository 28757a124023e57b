"""The merge queue as a pure engine: a queue and an input in, the next queue and actions out.

Theory of operation. A queue is one frozen value (`model.py`): entries (submissions of pull
requests), runs (tests of entries on test branches), bisections, the target's tip, holds and
settings. The only entry point is `engine.step(queue, input, now)`. It returns the next value,
actions for the shell ("build this test branch", "land this commit") and events for the journal.
The engine does no I/O, reads no clock and uses no randomness: time and facts are arguments, ids
come from the queue's own id and a counter. The same inputs always give the same value.

One step. `applying/` has one function per input; it changes only what the input names, or
refuses the command. `planning/plan.py` then runs the passes over the state until nothing
changes: which entries are ready (`state/readiness.py`), what the reports mean
(`culprits/verdict.py`) and what follows from them (`planning/settling.py`), which entry is the
culprit (`culprits/`), which runs lost their base (`planning/dropping.py`), what lands
(`planning/landing.py`) and what starts (`planning/starting.py`). Planning reads the state and
no history, so a lost, repeated or late input changes when something happens, not what happens.
Last, `invariants.py` checks the new value and raises if an invariant is broken.

    inputs, outputs, model, states, reasons, config   the values that go in and out
    engine        one step: apply the input, plan, check
    applying/     what each input changes
    state/        the queue while a step changes it: entries, their line, bases, holds, readiness
    culprits/     what a run shows, and which pull request caused a failure
    planning/     what follows from the state: settle, drop, land, start
    policy/       which of what may follow is best: the answers of `batchSizing` FIXED and ADAPTIVE
    explaining/   why an entry waits, when it will merge, what a command would do

`state/draft.py` is the only place where a state changes: it looks the step up in `states.py`,
needs a reason and records an event. `state/places.py` has its indexes, so that the cost of a
step depends on what it touches. They follow from the value and are rebuilt after a load.

Order. Entries that were put into a run form the *line*, by rank. Pending entries follow, by
priority and by when they were first ready. The line is a graph (`state/graph.py`): a node is
the batch of a live run or one placed entry, with edges to the nodes ahead that it overlaps,
directly or through others. In SINGLE mode any two nodes overlap; in PARALLEL mode those whose
impacted targets overlap, so that disjoint changes form lanes that land independently. A run is
built on its *base*: the tip and the nodes ahead of it. A base *holds* while the target received
only what the base predicted, or changes that overlap nothing of it, and the rest of the base is
still what is ahead. A predicted landing therefore restarts no run; any other change restarts
exactly the runs whose base did not come true.

Failure. A failed group is *out*: no run builds on it, and it is judged when everything below it
has passed, because then it is the only unproven change of a tree that failed. A failed batch is
bisected in cumulative parts on the same base; proven parts land, unless that would disturb an
entry that went ahead. With optimistic merging a failed group stays in bases for a while: a
follower that passes on top of it clears it, and both land as one unit. With adaptive batches
risky entries are first tested beside the line unless it is idle, and a failed group leaves it when
that costs less than to wait. Its entries are tested apart until what is believed of each clears or
convicts it, so that no other entry waits for the verdict. Idle slots hedge: they test a group on
the base that it would have if an entry ahead failed.

A worked example, two slots. 1 and 2 are submitted: run 1 tests 1 on the tip, run 2 tests 2 on
the tip with 1. Run 2 passes: 2 waits for 1. Run 1 fails: 1 was tested on the tip alone, so it is
FAILED; run 2 has lost its base, 2 is PENDING again with `ahead_failed` and restarts on the tip.
Had run 2 failed first, 2 would have left all bases at once and waited, unjudged, for the result
of 1: if 1 passes, 2 is FAILED; if 1 fails, 2 is tested again. With optimistic merging and a
depth of 1, the failure of run 1 would have waited for run 2, and its pass would have landed both.
"""
