"""`python -m tests.bench`: measure, print a table, keep it in docs/reference (SCALE=1 alone).

ONLY=name picks one subject (engine, scheduling, agents, flaky, store, api, metrics, pages, reports,
judging, tests, service, undoing, conflicts, limits); SCALE multiplies the work, and above 1 adds
longer histories. All subjects together take less than half an hour on two idle cores, half of it
for `limits`. Each figure is shown beside a reference that was measured in the same run, or beside a
budget. A missed goal is printed; a missed gate (docs/design/detector.md 13) also fails the command
at the end.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TypedDict

from tests.bench import (
    api,
    conflicts,
    counting,
    deliveries,
    engine,
    judging,
    limits,
    metrics,
    pages,
    reports,
    service,
    store,
    tables,
    tests,
    undoing,
    uploads,
)
from tests.bench.agents import comparison
from tests.bench.flaky import scenarios
from tests.bench.scheduling import goals
from tests.bench.tables import Row
from tests.bench.worlds import measured as small_worlds


class Measured(TypedDict):
    """The figures of one subject, with the machine and day of its run."""

    about: dict[str, str]
    took_s: int
    figures: Sequence[Row]


SUBJECTS: dict[str, Callable[[float], Sequence[Row]]] = {
    "engine": engine.run,
    "scheduling": goals.run,
    "agents": comparison.run,
    "flaky": scenarios.run,
    "worlds": small_worlds.run,
    "store": store.run,
    "api": api.run,
    "metrics": metrics.run,
    "pages": pages.run,
    "reports": lambda scale: [*reports.run(scale), *uploads.run(scale), *counting.run(scale)],
    "judging": judging.run,
    "tests": tests.run,
    "service": lambda scale: [*service.run(scale), *deliveries.run(scale)],
    "undoing": undoing.run,
    "conflicts": conflicts.run,
    "limits": limits.run,
}
NOTES = {
    "scheduling": "One seed and a tenth of the pull requests, all of them where CI is overloaded. "
    "In other worlds of CI 300 pull requests. The tables are in scheduling.md.",
    "agents": "Simulated, five seeds; docs/explanation/agents-benchmark.md says what was modelled.",
}
"""What is said over the tables of a subject."""

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SHOWN = ("python", "aiohttp", "sqlalchemy", "uvloop")


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    packages = {name: version(name) for name in SHOWN[1:]}
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": str(os.cpu_count()),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **packages,
    }


def main() -> None:
    """Measure the chosen subject, or all and write the page. An argument prints the help."""
    if sys.argv[1:]:
        sys.exit(__doc__)
    only, scale = os.environ.get("ONLY", ""), float(os.environ.get("SCALE") or 1)
    if only and only not in SUBJECTS:
        sys.exit(f"ONLY={only} is no subject; there are {', '.join(SUBJECTS)}")
    measured: dict[str, Measured] = {}
    for name, run in SUBJECTS.items():
        if only in {"", name}:
            began = perf_counter()
            rows = [tables.judged(row) for row in run(scale)]
            took_s = round(perf_counter() - began)
            measured[name] = {"about": machine(), "took_s": took_s, "figures": rows}
            sys.stdout.write(f"\n{section(name, measured[name])}")
            sys.stdout.flush()
    if scale == 1:
        keep(measured)
    rows = [row for each in measured.values() for row in each["figures"]]
    gates = [row for row in rows if "gate" in row]
    if missed := sum(map(tables.is_missed, gates)):
        sys.exit(f"{missed} of {len(gates)} gates are missed")


def section(name: str, measured: Measured) -> str:
    """What the page has of one subject."""
    about = f"{measured['took_s']} s, {measured['about']['date']}"
    return tables.section(f"{name} ({about})", measured["figures"], NOTES.get(name, ""))


def keep(measured: Mapping[str, Measured]) -> None:
    """Write the figures where the documentation shows them; other subjects keep theirs."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    file = REFERENCE / "benchmarks.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    found = {**before, **measured}
    known = {name: found[name] for name in SUBJECTS if name in found}
    file.write_text(json.dumps(known, indent=2) + "\n")
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    parts = [section(name, each) for name, each in known.items()]
    text = f"# Benchmarks\n\nWritten by `make bench`. {about}.\n\n{tables.LEGEND}\n"
    (REFERENCE / "benchmarks.md").write_text(text + "\n".join(parts))


if __name__ == "__main__":
    main()
