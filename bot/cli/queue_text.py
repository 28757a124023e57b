"""A queue on a terminal: its summary and holds, the pull requests in it, its settings."""

from collections.abc import Sequence

from bot.cli import config_file, output
from bot.cli.queue_settings import DEFAULTS, written
from bot.uploader.transport import Json
from service.mergequeue.engine.states import QueueState
from service.text import markdown, phrases
from service.vocabulary import RequiredSource


def print_summary(repo: str, answer: Json) -> None:
    """Print a queue's name, state, required checks, version, troubles and holds."""
    output.line(f"{repo} {answer['branch']}")
    output.print_facts(
        [
            ("State", output.state_word(answer)),
            ("New mode", answer.get("targetMode")),
            ("Because", because(answer)),
            ("Required", required(answer)),
            ("Test branches", test_branches(answer)),
            ("Version", answer.get("version")),
            ("File", set_by_file(answer)),
            ("Ignored", output.joined(answer.get("ignoredFields"))),
        ]
    )
    for each in output.objects(answer.get("troubles")):
        output.line(f"Trouble: {each.get('text')}")
    for each in output.objects(answer.get("holds")):
        output.line(hold_line(each))
    file = answer.get("repositoryFile")
    for each in output.objects(file.get("faults") if isinstance(file, dict) else None):
        output.line(f"Fault, not in force: {config_file.place_of(each)}")
    for each in output.objects(answer.get("ruleNotes")):
        output.line(f"Rule {each.get('rule')}: {each.get('text')}")


def set_by_file(answer: Json) -> str:
    """Return the settings whose value comes from a file of the repository: `batch, mode`."""
    sources = answer.get("settingSources")
    named = sources.items() if isinstance(sources, dict) else ()
    names = sorted(name for name, source in named if config_file.is_from_file(source))
    return f"sets {', '.join(names)}" if names else ""


def because(answer: Json) -> object:
    """Return the reason that people gave for the state; a change of mode needs none."""
    is_switching = output.state_of(answer) == QueueState.SWITCHING_MODES
    return None if is_switching else answer.get("stateReason")


def required(answer: Json) -> str:
    """Return `lint, test (branch protection)`."""
    names = output.joined(answer.get("effectiveRequiredStatuses"))
    if not names:
        return "none found"
    return f"{names} ({source(answer.get('requiredStatusesSource'))})"


def test_branches(answer: Json) -> str | None:
    """Return `pushed: ci.yml starts on pushes`; None if the answer has no kind."""
    kind, reason = answer.get("testBranchKind"), answer.get("testBranchKindReason")
    if kind is None:
        return None
    word = {"DRAFT_PR": "draft pull requests", "PUSH": "pushed"}.get(str(kind), str(kind))
    return f"{word}: {reason}" if reason else word


def source(origin: object) -> str:
    """Return where required statuses come from, as comments say it; an unknown word unchanged."""
    known = {each.value: each for each in RequiredSource}
    if origin is not None and origin not in known:
        return str(origin)
    return markdown.plain(phrases.source(known.get(str(origin))))


def hold_line(held: Json) -> str:
    """Return `Held (LAND, ID) by alice since 2026-03-02 14:02 UTC: release freeze`."""
    by = held.get("by")
    who = by.get("login") or by.get("kind") if isinstance(by, dict) else None
    since, until = held.get("since"), held.get("until")
    return (
        f"Held ({held.get('scope')}, {held.get('id')})"
        + (f" by {who}" if who else "")
        + (f" since {output.moment(since)}" if since else "")
        + (f" until {output.moment(until)}" if until else "")
        + f": {held.get('text')}"
    )


def print_entries(answer: Json) -> None:
    """Print the pull requests in the queue, if there are any."""
    entries = output.objects(answer.get("enqueuedPullRequests"))
    if not entries:
        return
    mates = [tested_with(entry, entries) for entry in entries]
    shared = ("With",) if any(mates) else ()
    output.print_table(
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
            for entry, others in zip(entries, mates, strict=True)
        ],
    )


def tested_with(entry: Json, entries: Sequence[Json]) -> str:
    """Return `#1, #2`: the others in the same test run; empty if it is tested alone."""
    run = entry.get("testRunId")
    mates = [each["prNumber"] for each in entries if run and each.get("testRunId") == run]
    return output.numbers([number for number in mates if number != entry["prNumber"]])


def print_settings(answer: Json, *, are_all: bool) -> None:
    """Print the settings by name: all, or those that differ from their default."""
    settings = {name: value for name, value in answer.items() if name in DEFAULTS}
    chosen = {
        name: value
        for name, value in sorted(settings.items())
        if are_all or not config_file.is_equal(value, DEFAULTS[name])
    }
    if chosen:
        output.print_table(
            ("Setting", "Value", "Default"),
            [(name, written(value), written(DEFAULTS[name])) for name, value in chosen.items()],
        )
    if len(chosen) < len(settings):
        whose = "The other" if chosen else "All"
        output.line(f"{whose} settings have their default; --all-settings lists them.")
