"""`python -m tests.mutants [MODULE…]`: print how the mutants of modules end, survivors by name."""

import sys

from tests.mutants import running
from tests.mutants.targets import TARGETS


def said(text: str) -> None:
    """Print one line at once: a module takes minutes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the modules that are named, or all."""
    for module in sys.argv[1:] or TARGETS:
        said(running.tally_of(module, lambda name: said(f"  survived: {name}")).row)


if __name__ == "__main__":
    main()
