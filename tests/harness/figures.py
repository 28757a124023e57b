"""What long tests went through, added up and printed at the end of the run.

A test calls `record_property` with a name of FIGURES and a number, or with `found` and a line to
print; this works from every worker.
"""

from collections import Counter

import pytest

FIGURES = ("histories", "pull requests", "inputs", "states", "edges")
"""Numbers that are added up, in the order in which they are printed."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was found, then the sums."""
    sums: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "found":
                terminalreporter.write_line(str(value))
            elif name in FIGURES:
                sums[name] += int(str(value))
    if sums:
        words = [f"{sums[name]:,} {name}" for name in FIGURES if name in sums]
        terminalreporter.write_line("gone through: " + ", ".join(words))
