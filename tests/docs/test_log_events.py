"""docs/reference/log-events.md is written from the calls that log."""

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.tidy.tree import ROOT

PAGE = ROOT / "docs/reference/log-events.md"
LEVELS = frozenset({"error", "exception", "warning", "info", "debug"})

INTRODUCTION = """\
# Log events

Written by `make docs` from the calls in the code. Edit the calls and not this page.

The service writes one line for each event on stderr, with `HEADGATE_LOG_FORMAT=json` as an object:
`ts`, `level`, `event`, and the fields of the table. An error of the program adds `exception`. A
`queue` is the id of a queue in the database. Secrets are masked. `HEADGATE_LOG_LEVEL` chooses the
least level that is written; the default is `info`. Build alerts on [metrics](metrics.md): events
and fields may change with a version.

The meaning is the comment above the call, or else what the function does that has the call. Lines
of libraries have the field `logger`, and a sentence as the event.
"""

HEADINGS = {
    "error": "Errors: a person should look",
    "warning": "Warnings: it goes on by itself, later or with less",
    "info": "Information",
    "debug": "Debugging: only with `HEADGATE_LOG_LEVEL=debug`",
}
HEAD = "| Event | Fields | Meaning | Where |\n|---|---|---|---|\n"


@dataclass(frozen=True)
class Call:
    """One call that logs."""

    event: str
    level: str
    fields: tuple[str, ...]
    where: str
    said: str
    does: str


def calls() -> list[Call]:
    """Every call that logs an event, in the order of files."""
    found = []
    for folder in ("bot", "service"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            found += calls_in(name, path.read_text("utf-8"))
    return found


def calls_in(name: str, text: str) -> list[Call]:
    """The calls of one module."""
    if "structlog" not in text:
        return []
    module = ast.parse(text)
    return [
        Call(
            event=str(ast.literal_eval(call.args[0])),
            level="error" if method == "exception" else method,
            fields=tuple(each.arg for each in call.keywords if each.arg and each.arg != "exc_info"),
            where=name,
            said=comment_above(call, text),
            does=does,
        )
        for method, call, does in logging_calls(module, described(module, ""))
    ]


def logging_calls(node: ast.AST, does: str) -> Iterator[tuple[str, ast.Call, str]]:
    """Calls as `log.info("event", …)`, with what the innermost described function does."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=method)):
                if method in LEVELS:
                    yield method, child, does
        is_within = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from logging_calls(child, described(child, does) if is_within else does)


def comment_above(call: ast.Call, text: str) -> str:
    """The comment that ends in the line before a call."""
    above = reversed(text.splitlines()[: call.lineno - 1])
    found = itertools.takewhile(lambda line: line.startswith("#"), map(str.strip, above))
    return " ".join(line.lstrip("# ") for line in reversed(list(found)))


def described(node, otherwise: str) -> str:
    """The first sentence of a docstring."""
    text = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return " ".join(text.split()) or otherwise


def page() -> str:
    """The whole page: a table for each level, one row for each event."""
    lines = [INTRODUCTION]
    for level, heading in HEADINGS.items():
        rows = defaultdict(list)
        for call in calls():
            if call.level == level:
                rows[call.event].append(call)
        lines += [f"\n## {heading}\n\n{HEAD}", *(row(*each) for each in sorted(rows.items()))]
    return "".join(lines)


def row(event: str, found: list[Call]) -> str:
    """The row of an event, which several calls may log."""
    fields = dict.fromkeys(field for call in found for field in call.fields)
    said = [call.said for call in found if call.said]
    means = " ".join(dict.fromkeys(said or (call.does for call in found))).replace("|", "\\|")
    where = " ".join(dict.fromkeys(f"`{call.where}`" for call in found))
    return f"| `{event}` | {', '.join(f'`{each}`' for each in fields)} | {means} | {where} |\n"


def test_the_page_is_current(pytestconfig: pytest.Config):
    fresh = page()
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


def test_every_event_is_a_literal_so_that_the_page_has_it():
    names = [call.event for call in calls()]
    assert len(names) > 80
    assert {"landing_mismatch", "ready", "queue_stalled"} <= set(names)
