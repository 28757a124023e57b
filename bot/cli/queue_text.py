"""A queue as a terminal shows it: its head and holds, what is in it, its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

import orjson
from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from bot.cli import output
from bot.cli.client import Json
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.states import QueueState
from service.text import markdown, phrases
from service.vocabulary import RequiredSource

# Fields of an answer that are shown apart from the settings.
APART = frozenset(
    {
        "branch",
        "effectiveRequiredStatuses",
        "enqueuedPullRequests",
        "holds",
        "ignoredFields",
        "links",
        "requiredStatusesSource",
        "ruleNotes",
        "settingSources",
        "state",
        "stateChangedAt",
        "stateChangedBy",
        "stateReason",
        "targetMode",
        "testBranchKind",
        "testBranchKindReason",
        "version",
    }
)


def plain_value(value: object) -> JsonValue:
    """A setting's value as JSON."""
    decoded: JsonValue = orjson.loads(orjson.dumps(value))
    return decoded


DEFAULTS: Mapping[str, JsonValue] = {
    to_camel(field.name): plain_value(getattr(QueueConfig(), field.name))
    for field in fields(QueueConfig)
}


def head(repo: str, answer: Json) -> None:
    """Print a queue's name, state, required checks, version and holds."""
    output.line(f"{repo} {answer['branch']}")
    output.facts(
        [
            ("State", output.state_of(answer)),
            ("New mode", answer.get("targetMode")),
            ("Because", because(answer)),
            ("Required", required(answer)),
            ("Test branches", test_branches(answer)),
            ("Version", answer.get("version")),
            ("Ignored", ", ".join(map(str, as_list(answer.get("ignoredFields"))))),
        ]
    )
    for each in as_list(answer.get("holds")):
        if isinstance(each, dict):
            output.line(hold(each))
    for each in as_list(answer.get("ruleNotes")):
        if isinstance(each, dict):
            output.line(f"Rule {each.get('rule')}: {each.get('text')}")


def because(answer: Json) -> JsonValue:
    """Why the queue is in its state, as somebody said; a change of mode needs no reason."""
    is_switching = output.state_of(answer) == QueueState.SWITCHING_MODES
    return None if is_switching else answer.get("stateReason")


def required(answer: Json) -> str:
    """`lint, test (branch protection)`."""
    names = ", ".join(map(str, as_list(answer.get("effectiveRequiredStatuses"))))
    if not names:
        return "none found"
    return f"{names} ({source(answer.get('requiredStatusesSource'))})"


def test_branches(answer: Json) -> str | None:
    """`pushed: ci.yml starts on pushes`; None when the answer does not tell the kind."""
    kind, reason = answer.get("testBranchKind"), answer.get("testBranchKindReason")
    if kind is None:
        return None
    word = {"DRAFT_PR": "draft pull requests", "PUSH": "pushed"}.get(str(kind), str(kind))
    return f"{word}: {reason}" if reason else word


def source(origin: JsonValue) -> str:
    """Where required statuses come from, as comments say it; a word unknown here as it is."""
    known = {each.value: each for each in RequiredSource}
    if origin is not None and origin not in known:
        return str(origin)
    return markdown.plain(phrases.source(known.get(str(origin))))


def hold(held: Json) -> str:
    """`Held (LAND, ID) by alice since 2026-03-02 14:02 UTC: release freeze`."""
    by = held.get("by")
    who = by.get("login") or by.get("kind") if isinstance(by, dict) else None
    since = held.get("since")
    return (
        f"Held ({held.get('scope')}, {held.get('id')})"
        + (f" by {who}" if who else "")
        + (f" since {moment(since)}" if since else "")
        + f": {held.get('text')}"
    )


def moment(stamp: JsonValue) -> str:
    """`2026-03-02 14:02 UTC` of a time as the API writes it."""
    return datetime.fromisoformat(str(stamp)).strftime("%Y-%m-%d %H:%M UTC")


def entries(answer: Json) -> None:
    """Print the pull requests in the queue, when the answer lists any."""
    found = [each for each in as_list(answer.get("enqueuedPullRequests")) if isinstance(each, dict)]
    if not found:
        return
    mates = [tested_with(entry, found) for entry in found]
    shared = ("With",) if any(mates) else ()
    output.table(
        ("Place", "PR", *shared, "State", "Title", "Because"),
        [
            (
                "" if entry.get("position") is None else entry["position"],
                f"#{entry['prNumber']}",
                *((others,) if shared else ()),
                output.state_word(entry),
                entry["prTitle"],
                entry["reasonMessage"],
            )
            for entry, others in zip(found, mates, strict=True)
        ],
    )


def tested_with(entry: Json, entries: Sequence[Json]) -> str:
    """`#1, #2`: the others that the same test run tests; empty when it is tested alone."""
    run = entry.get("testRunId")
    mates = [each["prNumber"] for each in entries if run and each.get("testRunId") == run]
    return output.numbers([number for number in mates if number != entry["prNumber"]])


def settings(answer: Json, *, are_all: bool) -> None:
    """Print the settings by name: all, or those that differ from their default."""
    found = {name: value for name, value in answer.items() if name not in APART}
    chosen = {
        name: value
        for name, value in sorted(found.items())
        if are_all or value != DEFAULTS.get(name)
    }
    if chosen:
        output.table(
            ("Setting", "Value", "Default"),
            [(name, written(value), written(DEFAULTS.get(name))) for name, value in chosen.items()],
        )
    if len(chosen) < len(found):
        whose = "The other" if chosen else "All"
        output.line(f"{whose} settings have their default; --all-settings lists them.")


def written(value: JsonValue) -> str:
    """A setting's value as `--set` takes it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(is_plain(each) for each in value):
        return ", ".join(map(str, value))
    return orjson.dumps(value).decode()


def is_plain(value: JsonValue) -> bool:
    """Whether a member of a list can stand in a comma list as it is."""
    return isinstance(value, str) and "," not in value and value[:1] != "[" and value != "none"


def as_list(value: JsonValue) -> list[JsonValue]:
    """The list itself, or an empty one."""
    return value if isinstance(value, list) else []
