"""Required checks that the rules of the branch bind to no App."""

from collections.abc import Iterator

from bot.github.audits.facts import RepositoryFacts
from bot.github.rules import Rule
from service.provider.audits import Finding, note, warning
from service.vocabulary import BY_SETTING, CheckKind, RequiredName

ID = "status-sources"
FINE = "The rules of the branch name the App of each required check."


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a finding for each check without an App, and where to choose the one that reports it.

    A warning where Headgate has to believe an account, or knows no reporter at all.
    """
    known = {one.name: one for one in facts.subject.required}
    places: list[tuple[Rule | None, tuple[RequiredName, ...]]] = [
        (rule, rule.checks) for rule in facts.read.rules
    ]
    for rule, checks in (*places, (None, facts.read.classic.checks)):
        for check in checks:
            if check.source_id is None and check.name in known:
                yield _finding(known[check.name], facts.place_of(rule))


def _finding(known: RequiredName, place: str) -> Finding:
    name = f"`{known.name}`"
    told = (
        f"{place[0].upper()}{place[1:]} binds {name} to no App: for GitHub, everybody with write "
    )
    told += f"access can set it. {_believed(known)}"
    if known.kind is CheckKind.SUITE_RUN and known.source_id is not None:
        by = "" if known.binding is None or not known.binding.by else f" ({known.binding.by})"
        return note(ID, told, f"In {place}, choose App {known.source_id}{by} as source of {name}.")
    return warning(ID, told, f"In {place}, choose the App that reports {name} as its source.")


def _believed(known: RequiredName) -> str:
    binding = known.binding
    if binding is None:
        return "A queue learns who reports it, and believes no other."
    if not binding.on:
        return "Headgate has seen no report of it yet, and believes the check run of any App."
    if known.kind is CheckKind.STATUS:
        who = f"commit statuses of the account `{binding.by}`"
    elif known.source_id is not None:
        who = f"check runs of App {known.source_id}"
    elif known.kind is CheckKind.SUITE_RUN:
        who = "check runs, because several Apps report it"
    else:
        return "Headgate believes every report, because `statusReporters` says so."
    if binding.on == BY_SETTING:
        return f"Headgate believes only {who}, because `statusReporters` says so."
    return f"Headgate believes only {who}, as seen on {binding.on}."
