"""`python -m tests.bench`: measure, print a table, keep it in docs/reference.

ONLY=name picks one subject (engine, scheduling, flaky, store, api, metrics, reports, tests,
service); SCALE multiplies the work.
Figures mean nothing without their reference: each stands beside one that was measured in the
same run.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.bench import api, engine, metrics, reports, service, store, tests, uploads
from tests.bench.flaky import scenarios
from tests.bench.scheduling import goals

Row = dict[str, object]
SUBJECTS: dict[str, Callable[[float], Sequence[Row]]] = {
    "engine": engine.run,
    "scheduling": goals.run,
    "flaky": scenarios.run,
    "store": store.run,
    "api": api.run,
    "metrics": metrics.run,
    "reports": lambda scale: [*reports.run(scale), *uploads.run(scale)],
    "tests": tests.run,
    "service": service.run,
}
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


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown; a column for every key that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(str(row.get(name, '')) for name in names)} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Measure what was asked for; the whole of it is also written down."""
    only, scale = os.environ.get("ONLY", ""), float(os.environ.get("SCALE") or 1)
    if only and only not in SUBJECTS:
        sys.exit(f"ONLY={only} is no subject; there are {', '.join(SUBJECTS)}")
    measured: dict[str, Sequence[Row]] = {}
    for name, run in SUBJECTS.items():
        if only in {"", name}:
            measured[name] = run(scale)
            sys.stdout.write(f"\n## {name}\n\n{table(measured[name])}\n")
            sys.stdout.flush()
    if not only:
        keep(measured)


def keep(measured: dict[str, Sequence[Row]]) -> None:
    """Write the figures where the documentation shows them."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    about = machine()
    parts = [f"## {name}\n\n{table(rows)}\n" for name, rows in measured.items()]
    head = ", ".join(f"{key} {value}" for key, value in about.items())
    text = f"# Benchmarks\n\nWritten by `make bench`. {head}.\n\n" + "\n".join(parts)
    (REFERENCE / "benchmarks.md").write_text(text)
    whole = {"about": about, "figures": measured}
    (REFERENCE / "benchmarks.json").write_text(json.dumps(whole, indent=2) + "\n")


if __name__ == "__main__":
    main()
