"""How many random examples a property is tried with: few in `make test`, all in `make soak`."""

import os

IS_SOAK = os.environ.get("HEADGATE_SOAK") == "1"
SHARE = 4
"""`make test` tries one example in so many."""


def examples(number: int) -> int:
    """Return how many of `number` examples to try in this run."""
    return number if IS_SOAK else max(1, number // SHARE)
