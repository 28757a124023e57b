"""What commands print: one JSON value for programs, or aligned tables for people.

The answer goes to stdout, everything said on the way to stderr. Text from elsewhere (titles,
names, reasons) is written as plain text without control characters: a terminal obeys those.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import orjson
from pydantic import JsonValue
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

Json = dict[str, JsonValue]

# Off a terminal lines are as long as they are: a program cuts columns by itself.
WIDTH_OFF_TERMINAL = 1000
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")

GLYPHS: Mapping[str, str] = {
    "NOT_READY": "⏳",
    "PENDING": "🕒",
    "TESTING": "🧪",
    "TESTS_PASSED": "✅",
    "PENDING_FAILURE": "🔎",
    "MERGED": "🟣",
    "FAILED": "❌",
    "CANCELLED": "🚫",
}


def json_value(value: object) -> None:
    """Print one JSON value on stdout, field names as in the API."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def told(what: str) -> None:
    """Say something on stderr, one line."""
    sys.stderr.write(f"{plain(what)}\n")


def plain(value: object) -> str:
    """Text as a terminal may show it: no control or invisible characters, one line."""
    return CONTROL.sub(" ", str(value))


def stdout() -> Console:
    """The console of the answer; without color off a terminal or under NO_COLOR."""
    width = None if sys.stdout.isatty() else WIDTH_OFF_TERMINAL
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings, columns aligned."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        shown.add_column(heading)
    for row in rows:
        shown.add_row(*(Text(plain(cell)) for cell in row))
    printed(shown)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print `name  value` lines, aligned; pairs without a value are left out."""
    shown = Table(box=None, pad_edge=False, show_header=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", [], {}):
            shown.add_row(Text(name), Text(plain(value)))
    printed(shown)


def printed(shown: Table) -> None:
    """Print a table, without blanks at the ends of lines."""
    console = stdout()
    with console.capture() as captured:
        console.print(shown)
    for row in captured.get().splitlines():
        sys.stdout.write(row.rstrip() + "\n")


def line(text: str) -> None:
    """Print one line of the answer."""
    stdout().print(Text(plain(text)))


def state_of(answer: Mapping[str, JsonValue]) -> str:
    """A state in upper case, whichever case the service was told to answer in."""
    return str(answer["state"]).upper()


def state_word(answer: Mapping[str, JsonValue]) -> str:
    """`🧪 TESTING`; the word alone where the output cannot write the glyph."""
    word = state_of(answer)
    writes_glyphs = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return f"{GLYPHS[word]} {word}" if word in GLYPHS and writes_glyphs else word


def ordinal(number: object) -> str:
    """`3rd`; English has its exceptions between 11 and 13."""
    text = str(number)
    teens = text[-2:] in ("11", "12", "13")
    return text + ("th" if teens else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th"))


def clock_time(stamp: object) -> str:
    """`14:31 UTC` of a time as the API writes it."""
    return datetime.fromisoformat(str(stamp)).strftime("%H:%M UTC")


def standing(record: Json) -> str:
    """`TESTING, 1st of 7: testing since …` of a pull request's record, on one line."""
    place = ""
    if record.get("position") is not None:
        place = f", {ordinal(record['position'])} of {record['queueLength']}"
    return f"{state_of(record)}{place}: {record['reasonMessage']}"


def pull_request(record: Json, repo: str) -> None:
    """Print a pull request's record."""
    eta = record.get("eta")
    conclusion = record.get("conclusion")
    left = None
    if isinstance(eta, dict):
        left = f"{clock_time(eta['earliest'])} to {clock_time(eta['latest'])}"
    line(f"{repo} #{record['prNumber']} {record['prTitle']}")
    place = None
    if record.get("position") is not None:
        place = f"{ordinal(record['position'])} of {record['queueLength']}"
    ended = conclusion if isinstance(conclusion, dict) else {}
    failed = ended.get("failedStatuses")
    facts(
        [
            ("State", state_word(record)),
            ("Because", record["reasonMessage"]),
            ("Place", place),
            ("Ends", left),
            ("Head", str(record["prSha"])[:12]),
            ("Priority", f"{record['priorityName']} ({record['priorityValue']})"),
            ("Test run", record.get("testRunId")),
            ("Merged as", ended.get("mergedSha")),
            ("Failed", ", ".join(map(str, failed)) if isinstance(failed, list) else None),
        ]
    )


def explanation(answer: Json) -> None:
    """Print why a pull request is not merged yet: what is met, what is open, what comes next."""
    line(f"#{answer['prNumber']} {state_word(answer)}  {answer['summary']}")
    conditions = answer.get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, dict):
            line(f"  {'✓' if condition['met'] else '○'} {condition['text']}")
    coming = answer.get("next")
    required = answer.get("requiredStatuses")
    facts(
        [
            ("Next", coming.get("what") if isinstance(coming, dict) else None),
            ("Ahead", numbers(answer.get("ahead"))),
            ("Behind", numbers(answer.get("behind"))),
            ("Tested on", numbers(answer.get("dependsOn"))),
            ("Required", ", ".join(map(str, required)) if isinstance(required, list) else None),
        ]
    )


def numbers(value: JsonValue) -> str:
    """`#478, #480` of a list of pull request numbers."""
    return ", ".join(f"#{number}" for number in value) if isinstance(value, list) else ""


class Watch:
    """What is seen while a command waits: a moving line on a terminal, else one a change.

    On stderr, so that stdout holds the answer alone.
    """

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, highlight=False)
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=self.console,
            transient=True,
        )
        self.said = ""

    def __enter__(self) -> "Watch":
        """Begin to show."""
        if self.console.is_terminal:
            self.progress.start()
            self.task = self.progress.add_task("asking", total=None, left="")
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self.console.is_terminal:
            self.progress.stop()

    def show(self, record: Json) -> None:
        """Show where the pull request stands now; saying the same twice says nothing."""
        text = plain(f"#{record['prNumber']} {standing(record)}")
        eta = record.get("eta")
        if self.console.is_terminal:
            left = f"until {clock_time(eta['latest'])}" if isinstance(eta, dict) else ""
            self.progress.update(self.task, description=text, left=left)
        elif text != self.said:
            told(text)
        self.said = text
