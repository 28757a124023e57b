"""Every state the engine can come to in a small world, one by one.

A *scope* (`scopes.py`) is a small world: settings, some pull requests, and what may happen in it.
The search begins with an empty queue and tries, breadth first, every input in every state: what
people do, every answer of builds, CI and landings, the passing of time to the next clock, and a
crash. `scene.py` is one state of such a world, `moves.py` what may happen next. Two states that
differ only in names, in numbers that only count, or in how long ago something was, are one
state: `canonical.py` gives both the same key. So a scope is complete to the number of inputs
that it states, and says how many states there are.

What must hold (`properties.py`) is judged on every edge, from what CI said and what stands on
the branch. What a state alone can show - invariants over the whole value, that planning again
changes nothing, that somebody's move is left - is judged once for each state; so is that a
repeated report, and a late one of a run that is over, change nothing.

A failure prints the inputs that lead to it, the fewest there are.
"""
