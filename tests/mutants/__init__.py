"""Mutants: small faults planted into the code that guards landings or carries work, one by one.

Purpose. A condition that no test holds can be lost without notice. For every condition of the
modules in `targets.py` the tool makes a mutant: it negates the condition, replaces a comparison by
its neighbor, drops an operand, removes a `not`, flips a constant, drops an element of a set, or
drops a condition of a statement of SQL. It runs the nearest tests in a process of its own. A mutant
that no test notices has survived: it needs a test, or an entry in `equivalent.py` that says why it
changes nothing.

- operators.py: source text to mutants, by its syntax tree.
- targets.py: which tests are nearest to which module.
- equivalent.py: mutants that behave as the original, each with its reason.
- lines.py: which tests execute which lines of a module.
- running.py: the tests against one mutant, in a forked child and within a time limit.

`make soak ROWS=mutants` runs those of the modules of which none survives (`HELD`);
`python -m tests.mutants service/mergequeue/engine/culprits/verdict.py` runs those of one module and
prints the survivors; `--sample 40` draws so many of them by a fixed seed.

Worked example. `if days <= 3:` becomes `if days < 3:` and `if not (days <= 3):`. If the module's
tests pass with one of them, that mutant is printed as a survivor with its line.
"""
