"""Find the landings that a change would take back, and work that has landed already.

A stale branch can undo merged work although it merges cleanly and passes every check. `Ledger`
takes the recent landings of a branch, oldest first, and remembers which line of which file came
with which landing. Asked with the difference between the tip and a merge result, it names the
landings that would be gone:

    ledger = Ledger()
    for landing in landings:
        ledger.add(landing)
    undone = ledger.undone_by(change)
    declaration = Declaration.of(texts, repo)
    waits_for = [one for one in undone if not declaration.names(*facts_of(one))]

`repeated_by` and `landing_like` answer the reverse question: the change has landed before.
Nothing here reads git: `bot/github/gitbuild/undoing.py` does. Rules: docs/design/undone-work.md.
"""
