"""`python -m tests.bench.flaky`: docs/reference/flake-detection.md, from worlds of fresh seeds."""

import argparse
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.flaky import document, scenarios

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "flake-detection.md"


def main(argv: Sequence[str]) -> None:
    """Draw the worlds, judge them, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.flaky", description=__doc__)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=scenarios.SEEDS, help="how many a scenario")
    asked = parser.parse_args(argv)
    rows = scenarios.run(asked.seeds / scenarios.SEEDS, asked.first_seed)
    command = shlex.join(("python", "-m", "tests.bench.flaky", *argv))
    about = f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}"
    PAGE.write_text(document.page(rows, command, about))


if __name__ == "__main__":
    main(sys.argv[1:])
