"""Print the output of commands: one JSON value for programs, or aligned tables for people.

The answer goes to stdout, everything else to stderr. Text of other people (titles, names,
reasons) is printed without control characters, which a terminal would obey.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import orjson

from bot.uploader.transport import Json

# Off a terminal lines are as long as they are: programs cut columns themselves.
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
# Colors on a terminal; NO_COLOR turns them off.
STYLES: Mapping[str, str] = {
    "NOT_READY": "dim",
    "TESTING": "cyan",
    "TESTS_PASSED": "green",
    "PENDING_FAILURE": "yellow",
    "MERGED": "magenta",
    "FAILED": "red",
    "CANCELLED": "yellow",
    "RUNNING": "green",
    "PAUSED": "yellow",
    "DRAINING": "yellow",
}
MET, OPEN = "green", "yellow"
# A condition that counts although it is not met has a mark of its own.
CONDITION_GLYPHS: Mapping[str, str] = {"met": "✓", "skipped": "⊘", "excused": "!", "unknown": "?"}
# While these last, conditions say how the required checks proceed.
PROCEEDING = frozenset({"PENDING", "TESTING"})
CHECK_GLYPHS: Mapping[str, str] = {
    "passed": "✓",
    "reused": "✓",
    "excused": "!",
    "skipped": "⊘",
    "optional": "⊘",
    "failed": "✗",
}


class Colored(NamedTuple):
    """A cell that has a color on a terminal."""

    text: str
    style: str


def print_json(value: object) -> None:
    """Print one JSON value on stdout, with field names as in the API."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def print_text(text: str) -> None:
    """Print a text of our own unchanged, ended by one line feed."""
    sys.stdout.write(text.rstrip("\n") + "\n")


def log(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(f"{plain(text)}\n")


def plain(value: object) -> str:
    """Return text that is safe for a terminal: one line, no control or invisible characters."""
    return CONTROL.sub(" ", str(value))


def objects(value: object) -> list[Json]:
    """Return the objects of an array; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings, columns aligned."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(*_text_and_style(cell)) for cell in row))
    render(table)


def print_facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print `name  value` lines, aligned; pairs without a value are left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", [], {}):
            table.add_row(Text(name), Text(*_text_and_style(value)))
    render(table)


def print_linked(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows that end with an address: as a table if it fits, else a block for each row.

    An address that is broken over lines cannot be opened.
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    has_room = sum(widths) + 2 * len(widths) <= shutil.get_terminal_size().columns
    if has_room or not sys.stdout.isatty():
        print_table(headings, cells)
        return
    for first, *middle, address in cells:
        line(first, "bold")
        pairs = zip(headings[1:], middle, strict=False)
        line("  " + ", ".join(f"{heading}: {cell}" for heading, cell in pairs if cell))
        print_text(f"  {address}")


def _text_and_style(value: object) -> tuple[str, str]:
    """Return what a cell shows, and its style on a terminal."""
    if isinstance(value, Colored):
        return plain(value.text), value.style
    return plain(value), ""


def render(content: object) -> None:
    """Print on stdout without blanks at the ends of lines; no color off a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH_OFF_TERMINAL
    # Not bold either: logs keep what a terminal would show.
    colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(
        file=sys.stdout, width=width, highlight=False, soft_wrap=False, color_system=colors
    )
    with console.capture() as captured:
        console.print(content)
    for row in captured.get().splitlines():
        sys.stdout.write(row.rstrip() + "\n")


def line(text: str, style: str = "") -> None:
    """Print one line of the answer, in a style on a terminal."""
    from rich.text import Text

    render(Text(plain(text), style))


def state_of(answer: Mapping[str, object]) -> str:
    """Return a state in upper case; the service may be configured to answer in lower case."""
    return str(answer["state"]).upper()


def state_word(answer: Mapping[str, object]) -> Colored:
    """Return `🧪 TESTING`, without the glyph where stdout cannot encode it."""
    word = state_of(answer)
    has_glyphs = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = f"{GLYPHS[word]} {word}" if word in GLYPHS and has_glyphs else word
    return Colored(text, STYLES.get(word, ""))


def ordinal(number: object) -> str:
    """Return `3rd`; English has its exceptions between 11 and 13."""
    text = str(number)
    teens = text[-2:] in ("11", "12", "13")
    return text + ("th" if teens else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th"))


def clock_time(stamp: object) -> str:
    """Return `14:31 UTC` for a time of the API."""
    return datetime.fromisoformat(str(stamp)).strftime("%H:%M UTC")


def moment(stamp: object) -> str:
    """Return `2026-03-02 14:02 UTC` for a time of the API."""
    return datetime.fromisoformat(str(stamp)).strftime("%Y-%m-%d %H:%M UTC")


def moment_or(stamp: object, absent: str) -> str:
    """Return a time of the API as `moment` does, or `absent` for null."""
    return absent if stamp is None else moment(stamp)


def position_of(record: Json) -> str | None:
    """Return `1st of 7`; None for a pull request without a position."""
    if record.get("position") is None:
        return None
    return f"{ordinal(record['position'])} of {record['queueLength']}"


def status_line(record: Json) -> str:
    """Return `TESTING, 1st of 7: testing since …` for a pull request."""
    position = position_of(record)
    place = f", {position}" if position else ""
    return f"{state_of(record)}{place}: {record['reasonMessage']}"


def print_pull_request(record: Json, repo: str) -> None:
    """Print a pull request's record."""
    eta, conclusion, links = record.get("eta"), record.get("conclusion"), record.get("links")
    span = None
    if isinstance(eta, dict):
        span = f"{clock_time(eta['earliest'])} to {clock_time(eta['latest'])}"
    ended = conclusion if isinstance(conclusion, dict) else {}
    ruled = record.get("rules")
    rules = ruled if isinstance(ruled, dict) else {}
    entered = rules.get("enteredBy")
    line(f"{repo} #{record['prNumber']} {record['prTitle']}")
    print_facts(
        [
            ("State", state_word(record)),
            ("Because", record["reasonMessage"]),
            ("Place", position_of(record)),
            ("Ends", span),
            ("Head", str(record["prSha"])[:12]),
            ("Priority", _priority_of(record, rules)),
            ("Entered by", entered and f"rule {entered}"),
            ("Waits for", joined([_awaited(one) for one in objects(rules.get("waitsFor"))])),
            ("Test run", record.get("testRunId")),
            ("Merged as", ended.get("mergedSha")),
            ("Failed", joined(ended.get("failedStatuses"))),
            ("Page", links.get("page") if isinstance(links, dict) else None),
        ]
    )
    explained = record.get("explanation")
    failures = explained.get("failures") if isinstance(explained, dict) else None
    _print_evidence(record.get("requiredChecks"), failures)
    print_facts(_step_facts(record.get("nextStep")))


def print_next_step(step: Json) -> None:
    """Print what to do next about a pull request."""
    line(f"#{step['prNumber']} {step['kind']}  {step['text']}")
    _print_evidence(None, step.get("failures"))
    others = [
        f"#{one['prNumber']} by {one['author']}{' (merged)' if one['merged'] else ''}"
        for one in objects(step.get("conflictsWith"))
    ]
    print_facts(
        [
            ("Ask", step.get("person")),
            ("At", clock_time(step["at"]) if step.get("at") else None),
            ("Onto" if step["kind"] == "REBASE" else "Commit", step.get("commit")),
            (_paths_are(step), joined(step.get("paths"))),
            ("With", joined(others)),
            ("Suspects", numbers(step.get("suspects"))),
            ("Then", _command_of(step)),
        ]
    )


def _paths_are(step: Json) -> str:
    return "Taken back" if step["code"] == "undoes_landed_work" else "In conflict"


def _step_facts(step: object) -> list[tuple[str, object]]:
    """Return the rows about the next step, without what the rest of a page shows."""
    if not isinstance(step, dict):
        return []
    return [("To do", f"{step['kind']}: {step['text']}"), ("Then", _command_of(step))]


def _command_of(step: Json) -> object:
    call = step.get("call")
    return call["command"] if isinstance(call, dict) else None


def _priority_of(record: Json, rules: Json) -> str:
    by = rules.get("priorityBy")
    return f"{record['priorityName']} ({record['priorityValue']})" + (
        f", by rule {by}" if by else ""
    )


def _awaited(wait: Json) -> str:
    """Return a rule's wait: what for, by which rule, and until when."""
    until = f", until {clock_time(wait['until'])}" if wait["until"] else ""
    return f"{wait['text']} (rule {wait['rule']}{until})"


def print_explanation(answer: Json) -> None:
    """Print why a pull request is not merged yet: conditions met and open, and the next step."""
    state = state_word(answer)
    line(f"#{answer['prNumber']} {state.text}  {answer['summary']}", state.style)
    is_over = bool(answer.get("failures")) and state_of(answer) == "FAILED"
    for condition in objects(answer.get("conditions")) if not is_over else ():
        standing = str(condition.get("standing", "met" if condition["met"] else "open"))
        style = MET if standing == "met" else OPEN
        line(f"  {CONDITION_GLYPHS.get(standing, '○')} {condition['text']}", style)
    is_proceeding = state_of(answer) in PROCEEDING
    table = None if is_proceeding else answer.get("requiredChecks")
    _print_evidence(table, answer.get("failures"))
    coming, believed = answer.get("next"), answer.get("suspicion")
    print_facts(
        [
            ("Suspicion", believed.get("text") if isinstance(believed, dict) else None),
            ("Suspects", numbers(answer.get("suspects"))),
            ("Next", coming.get("what") if isinstance(coming, dict) else None),
            *(
                (f"Conflicts with #{one['prNumber']}", one["text"])
                for one in objects(answer.get("conflicts"))
            ),
            *_step_facts(answer.get("nextStep")),
            ("Ahead", numbers(answer.get("ahead"))),
            ("Behind", numbers(answer.get("behind"))),
            ("Tested on", numbers(answer.get("dependsOn"))),
            ("Required", joined(answer.get("requiredStatuses"))),
            ("Page", answer.get("page")),
        ]
    )


def _print_evidence(table: object, failures: object) -> None:
    """Print how each required check ended, then the failures, each check once."""
    for one in objects(table):
        passed = one["state"] in ("passed", "reused")
        line(f"  {CHECK_GLYPHS.get(str(one['state']), '○')} {one['text']}", MET if passed else OPEN)
        if one["state"] == "failed":
            _print_urls(one, "url")
            _print_failed_before(one)
    if not isinstance(failures, dict):
        return
    named = {one["name"] for one in objects(table)}
    for check in objects(failures.get("checks")):
        if check["name"] not in named:
            line(f"  ✗ {check['name']}", STYLES["FAILED"])
            _print_urls(check, "url")
            _print_failed_before(check)
    _print_failed_tests(failures)


def _print_failed_tests(failures: Json) -> None:
    """Print the tests that failed with their logs, and how the cause was found."""
    tests = objects(failures.get("tests"))
    for nth, test in enumerate(tests):
        is_excused = bool(test["quarantined"])
        known = test["knownAs"]
        excused = ", excused" if is_excused and known != "excused" else ""
        also = f", also fails on {test['failsOn']}" if test.get("failsOn") else ""
        glyph, style = ("!", OPEN) if is_excused else ("✗", STYLES["FAILED"])
        line(f"  {glyph} {test['name']} ({known}{excused}{also})", style)
        if test["message"]:
            line(f"      {test['message']}")
        if test["file"]:
            line(f"      {test['file']}" + (f":{test['line']}" if test["line"] else ""))
        _print_urls(test, "log", "page")
        # As on the page: the first one with its trace.
        for row in texts(test.get("trace")) if nth == 0 else ():
            line(f"      | {row}")
    counts = (failures["failedTests"], failures["excusedTests"])
    more = sum(int(str(each)) for each in counts) - len(tests)
    if more > 0:
        line(f"  and {more:,} more")
    if failures.get("text"):
        line(f"  {failures['text']}")


def _print_failed_before(check: Json) -> None:
    """Print the jobs that had failed when a check began, each with its log."""
    for job in objects(check.get("failedBefore")):
        line(f"    ✗ {job['name']}", STYLES["FAILED"])
        _print_urls(job, "url")


def _print_urls(shown: Json, *names: str) -> None:
    """Print addresses on lines of their own, where a terminal can open them."""
    for name in names:
        if shown.get(name):
            print_text(f"      {plain(shown[name])}")


def texts(value: object) -> list[str]:
    """Return the texts of an array; empty for anything else."""
    return [str(each) for each in value] if isinstance(value, list) else []


def joined(value: object) -> str:
    """Return `lint, test` for an array; empty for anything else."""
    return ", ".join(map(str, value)) if isinstance(value, list) else ""


def numbers(value: object) -> str:
    """Return `#478, #480` for an array of pull request numbers; empty for anything else."""
    return ", ".join(f"#{number}" for number in value) if isinstance(value, list) else ""
