"""The reference page of how well tests are judged, from the rows of `scenarios.py`."""

from collections.abc import Iterator, Mapping, Sequence

from tests.bench.flaky.rivals import RIVALS
from tests.bench.flaky.scenarios import LAWS, SCENARIOS, Row
from tests.bench.worlds.document import SECTION

HEAD = """# How well tests are judged

This page measures the detector on simulated repositories ("worlds") in which the truth is known.
Unless its scenario says otherwise, a world has 2,000 tests, 3 % of them flaky, and runs for 45
days in 4 jobs, with 40 CI runs of pull requests and 12 of main per day. Pull requests and main
break tests, and machines fail. Every number of a flaky test (its rate, the tests that it fails
together with, when it begins and ends) is random, from a seed; in scenario H every number of the
repository is random too. No number of the detector is fitted to these worlds, and your repository
differs from all of them. So compare rows; do not expect the same digits.

Written by `{command}` ({about}). Each row combines all worlds of its scenario. The goal of a figure
is in parentheses; a figure in bold misses it.

Columns:

- precision: of the days on which tests were flagged, the share on which they were flaky. The days
  between a fix and the end of the flag count as false
- impact recall: of the failures that flaky tests caused, the share that happened while the test
  was flagged
- false tests: the number of sound tests that were ever flagged, mean of the worlds
- flags: how often a flaky test was flagged
- detection: days until a flaky test that fails in 1 % of runs or more is flagged, median
- clearing: days from a fix to the end of the flag, median
- broken after: failing runs of main until a test is called broken, median
- rates: how often flaky tests fail. log-uniform: from 0.05 % to 50 %. heavy-tailed: half of them
  below 0.5 %, a quarter above 10 %
"""

FIGURES = {
    "precision": "precision",
    "impact recall": "impact recall",
    "false tests": "false tests",
    "flags per flaky test": "flags",
    "detection, days": "detection",
    "clearing, days": "clearing",
    "broken after": "broken after",
}
"""Name of a row's figure → its column."""

QUEUE = {
    "queue: good removed without knowledge": "good removed, without",
    "queue: good removed with it": "good removed, with it",
    "queue: bad merged": "bad merged",
    "queue: bad merged, not shielded": "of these by no quarantine",
    "queue: CI minutes a PR without": "CI minutes a PR, without",
    "queue: CI minutes a PR with": "CI minutes a PR, with it",
}

Known = Mapping[tuple[str, str, str], Row]
"""Rows by scenario, rates and figure."""


def page(rows: Sequence[Row], command: str, about: str) -> str:
    """The whole page."""
    known = {(str(row["scenario"]), str(row["rates"]), str(row["figure"])): row for row in rows}
    drawn = {each.shape.name for each in SCENARIOS}
    single = [row for row in rows if row["scenario"] not in drawn]
    parts = [
        HEAD.format(command=command, about=about),
        "## Scenarios\n",
        *_table(known, FIGURES),
        "\n## Beside simple detectors\n",
        "All rows are scenario A. `first flip` calls a test flaky after it first passed and failed",
        "on the same code; `three flips` after the third time in 14 days; `failure rate` while it",
        "fails in 2 % of a week's runs.\n",
        *_rivals(known),
        "\n## What a queue makes of it\n",
        "The last CI run of each pull request enters a queue: once without and once with knowledge",
        'of flaky tests. "Good" and "bad" say whether the pull request really breaks a test. A bad',
        "one may merge only if the test that it breaks is quarantined.\n",
        *_table(known, QUEUE),
        "\n## Alone\n",
        "| scenario | rates | figure | value | gate |",
        "|---|---|---|---|---|",
        *(
            f"| {row['scenario']} | {row['rates']} | {row['figure']} | {_alone(row)} |"
            for row in single
        ),
    ]
    return "\n".join(parts) + "\n" + SECTION


def _table(known: Known, figures: Mapping[str, str]) -> Iterator[str]:
    yield f"| scenario | rates | {' | '.join(figures.values())} |"
    yield f"|{'---|' * (len(figures) + 2)}"
    for each in SCENARIOS:
        for law in LAWS:
            name = each.shape.name
            shown = " | ".join(_shown(known[name, law, figure]) for figure in figures)
            yield f"| {name}: {each.about} | {law} | {shown} |"


def _rivals(known: Known) -> Iterator[str]:
    figures = ("precision", "impact recall", "false tests")
    yield f"| detector | rates | {' | '.join(figures)} |"
    yield f"|{'---|' * (len(figures) + 2)}"
    for law in LAWS:
        for name, prefix in (("Headgate", ""), *((rival, f"{rival}: ") for rival in RIVALS)):
            shown = " | ".join(str(known["A", law, prefix + each]["value"]) for each in figures)
            yield f"| {name} | {law} | {shown} |"


def _shown(row: Row) -> str:
    value = f"**{row['value']}**" if row.get("met") == "NO" else f"{row['value']}"
    return f"{value} ({row['gate']})" if row.get("gate") else value


def _alone(row: Row) -> str:
    value = f"**{row['value']}**" if row.get("met") == "NO" else f"{row['value']}"
    return f"{value} | {row.get('gate', '')}"
