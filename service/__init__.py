"""The merge queue, whatever the provider: rules, storage, operations, HTTP interface.

A pure engine over rows, with an inbox and an outbox. A fact from outside is stored first
(inbox). It becomes an input of one queue and wakes one *turn*: a single transaction that
loads the queue as one value, asks the pure engine for the next value, and saves the changed
rows, a journal of what happened and an outbox of what must be done. Effects run after the
commit; their results come back as inputs. The engine plans from the whole state each time, so
a fact that is lost, doubled or late changes when something happens, not what.

The floors, each importing only those below it:

- `api`, `workers`: the faces and the loops. They check shapes, wake up, and call operations.
- `operations`: one function for each thing that can be asked or must be done.
- `store`: the only part that speaks SQL. Returns values, never rows.
- `wording`: reasons and states as text that people read.
- `simulation`: the engine in virtual time over submissions with known outcomes.
- `mergequeue`: the engine. States and transitions are data, `engine.step` is the one door,
  and nothing in it does I/O or reads a clock.
- `provider`: the seam. Outward the `Provider` protocol, inward the signals.
- `vocabulary`, `errors`, `clock`: words that all floors share.

A worked example. Someone comments `/merge` on pull request 3. The delivery is an inbox row.
The inbox worker translates it to the signal "asked", `operations` reads from the provider
whether the person may and which checks the branch requires, and `Submit` becomes an input of
the queue. The turn adds an entry, starts a test run for it, writes both, and leaves in the
outbox "build this test branch". The outbox worker has the provider build it and reports the
commit. Checks on that commit arrive the same way; when the required ones have passed, the
engine asks for the landing. `operations/landing.py` takes a permit, lands, reads the branch
back and compares its tree with the tested one. Only then is the entry MERGED.
"""
