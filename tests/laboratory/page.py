"""The page of producers: docs/reference/producers.md."""

from collections.abc import Mapping

from tests.laboratory import judge
from tests.laboratory.all_producers import PRODUCERS
from tests.laboratory.judge import AS_FAILURE, BY_CODE, RIGHT, Condition
from tests.laboratory.named import NAMED
from tests.laboratory.producer import Home
from tests.laboratory.record import RECORDED

HEAD = """# Producers of test reports

What Headgate reads of the reports that real producers write. Each producer ran sample tests whose
names tell how they end. The tests of Headgate read these reports; they run what `make assets`
fetches once more. `make docs` writes this page from `tests/laboratory`.

"""
MARKS = {
    "✓": "right",
    "code": f"{BY_CODE}. So name no exit code in `test_failure_exit_codes` with which this"
    " producer ends for other faults too",
    "test": f"{AS_FAILURE}. While it is quarantined, only its known failures are excused"
    " (`quarantine_forgives`)",
    "a number": "not right: see the [notes](#notes)",
    "-": "the producer has no such thing, or it was not played",
}
RULES = {
    "pass, fail, error, skip": "the test ends so",
    "flake": "the failed attempt and the one that passed are both read",
    "crash, interrupted, does not load, threshold missed": "nothing is excused, although all"
    " failed tests are quarantined and the change touches every file",
    "two projects": "each test is there once for each project",
    "re-run, two machines, two directories, two orders": "tests have the same ids, and end alike",
    "rename": "one test is gone and one is new",
    "two shards": "each test is in one of them, with the id that it has without shards",
}


def page() -> str:
    """Return the page."""
    columns = list(Condition)
    notes: dict[str, int] = {}
    rows = [
        "| Producer | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name, producer in PRODUCERS.items():
        cells = judge.judged(producer, judge.recorded(RECORDED / name))
        marks = [_mark(name, condition, cells.get(condition), notes) for condition in columns]
        shown = f"`{name}`" + (" (recorded)" if producer.home is Home.MACHINE else "")
        rows.append(f"| {shown} | " + " | ".join(marks) + " |")
    listed = "".join(f"{at}. {note[0].upper()}{note[1:]}.\n" for note, at in notes.items())
    table = "\n".join(rows)
    legend = _table("Mark", "Means", MARKS) + _table("Condition", "Right is", RULES)
    return f"{HEAD}{legend}{table}\n\n## Notes\n\n{listed or 'None.'}"


def _table(left: str, right: str, rows: Mapping[str, str]) -> str:
    body = "".join(f"| {name} | {text} |\n" for name, text in rows.items())
    return f"| {left} | {right} |\n|---|---|\n{body}\n"


def _mark(name: str, condition: Condition, said: str | None, notes: dict[str, int]) -> str:
    if said is None:
        return "-"
    if said == RIGHT:
        return "✓"
    if said in (BY_CODE, AS_FAILURE):
        return "code" if said == BY_CODE else "test"
    return str(notes.setdefault(NAMED[name][condition].because, len(notes) + 1))
