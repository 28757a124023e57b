"""The engine against a world it cannot see: hidden faults, a hostile post, people, and a checker.

`truth.py` is what pull requests do and how CI answers, `world.py` the people, the shell and the
post between them, `checker.py` the properties that must hold whatever happens: it looks at
what landed on the branch and at events, and uses none of the engine's own rules. One seed is one
history; HEADGATE_SIM_SEEDS raises their number.
"""
