"""`python -m tests.mutants [MODULE…]`: print how the mutants of modules end, survivors by name.

`--sample 40` runs so many of a module's mutants, drawn by a fixed seed.
"""

import argparse
import sys

from tests.mutants import running
from tests.mutants.targets import TARGETS


def said(text: str) -> None:
    """Print one line at once: a module takes minutes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the modules that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=list(TARGETS))
    parser.add_argument("--sample", type=int, metavar="COUNT")
    asked = parser.parse_args()
    for module in asked.modules:
        tally = running.tally_of(module, lambda name: said(f"  survived: {name}"), asked.sample)
        said(tally.row)


if __name__ == "__main__":
    main()
