"""The pull requests of the visitor and of their team, over all queues that they may see."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from service.accounts import page_addresses
from service.dashboard import line, marks, page_of_queue
from service.dashboard.line import CheckShown
from service.dashboard.marks import Mark
from service.dashboard.page_of_queue import LeftRow
from service.dashboard.visitors import Rights, Visitor
from service.errors import Malformed
from service.mergequeue.api import responses
from service.mergequeue.operations import overview, people
from service.mergequeue.operations.people import LeftSubmission, OpenSubmission
from service.mergequeue.operations.views import PullRequestView
from service.mergequeue.wording import reasons
from service.runtime import Options, Runtime
from service.text import phrases
from service.text.phrases import Phrase, phrase
from service.vocabulary import RepoRef

TEAM_MAX = 30
"""People whose pull requests are shown together."""

COOKIE = "headgate-team"
REMEMBERED_S = 365 * 24 * 3600

_LOGIN = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,80})(?:\[bot\])?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A submission in a queue; `who` acts, and `is_theirs`: it is one of the people here."""

    name: str
    branch: str
    path: str
    queue_path: str
    view: PullRequestView
    mark: Mark
    waits: tuple[Phrase, ...]
    checks: tuple[CheckShown, ...]
    who: str
    is_theirs: bool


@dataclass(frozen=True, slots=True)
class EndedRow:
    """A submission that has left its queue."""

    name: str
    branch: str
    path: str
    queue_path: str
    row: LeftRow


@dataclass(frozen=True, slots=True)
class Group:
    """The submissions of the visitor, or of their team; those whose author has to act first."""

    open: tuple[OpenRow, ...]
    left: tuple[EndedRow, ...]

    @property
    def acting(self) -> int:
        """The number of those whose author has to act."""
        return sum(row.is_theirs for row in self.open)


@dataclass(frozen=True, slots=True)
class MinePage:
    """The page. `person` is empty for a visitor who is no person of the provider.

    `repositories_max`: as on the first page, access was read in this many repositories alone.
    """

    person: str
    team: tuple[str, ...]
    own: Group
    others: Group
    more: int
    repositories_max: int | None

    @property
    def heading(self) -> str:
        """`3 of your pull requests are in a queue, 1 waits for you`."""
        count = len(self.own.open)
        if not self.person:
            return "Pull requests of your team"
        if not count:
            return "None of your pull requests is in a queue"
        acting = self.own.acting
        of_them = f"{count} of your pull requests {'is' if count == 1 else 'are'} in a queue"
        return f"{of_them}, {acting} wait{'s' * (acting == 1)} for you" if acting else of_them


def team_of(text: str) -> tuple[str, ...]:
    """Return the people whom a text names, each once. Raises Malformed."""
    names = (each.removeprefix("@") for each in re.split(r"[\s,]+", text) if each)
    found = {each.lower(): each for each in names}
    wrong = [each for each in found.values() if not _LOGIN.fullmatch(each)]
    if wrong:
        raise Malformed(f"`{wrong[0][:100]}` is not a login of GitHub.")
    if len(found) > TEAM_MAX:
        raise Malformed(f"A team has at most {TEAM_MAX} people here.")
    return tuple(found.values())


def remembered(visitor: Visitor, cookie: str) -> tuple[str, ...]:
    """Return the team that this browser remembers for the visitor; another's is not shown."""
    whose, _, team = cookie.partition(":")
    if unquote(whose) != visitor.key:
        return ()
    try:
        return team_of(unquote(team))
    except Malformed:
        return ()


def cookie_of(visitor: Visitor, team: Sequence[str]) -> str:
    """Return what a browser remembers."""
    return f"{quote(visitor.key, safe='')}:{quote(','.join(team), safe='')}"


def address_of(team: Sequence[str]) -> str:
    """Return the address of the page of a team."""
    return f"/mine?team={quote(','.join(team), safe=',')}"


async def read(runtime: Runtime, visitor: Visitor, rights: Rights, team: Sequence[str]) -> MinePage:
    """Return the page."""
    person = visitor.actor.login if visitor.host else ""
    own = {person.lower()} - {""}
    others = {each.lower() for each in team} - own
    found = await people.load_submissions(runtime, rights.scope, own | others)
    options = runtime.options
    limit = overview.REPOSITORIES_MAX if rights.is_partial else None

    def group(logins: Collection[str], without: Collection[str]) -> Group:
        shown = [
            _open(runtime, each)
            for each in found.open
            if people.is_of(each.view.entry, logins) and not people.is_of(each.view.entry, without)
        ]
        left = [
            _ended(options, each)
            for each in found.left
            if people.is_of(each.left.entry, logins) and not people.is_of(each.left.entry, without)
        ]
        return Group(tuple(sorted(shown, key=lambda row: not row.is_theirs)), tuple(left))

    return MinePage(person, tuple(team), group(own, ()), group(others, own), found.more, limit)


def _open(runtime: Runtime, one: OpenSubmission) -> OpenRow:
    view, entry = one.view, one.view.entry
    home = page_addresses.home(runtime.options, view.queue.repo)
    run = one.value.runs.get(entry.run or entry.verified_by or "")
    who = page_of_queue.who_acts(responses.acting_of(view).who, entry)
    waits = tuple(line.notes_of(one.value, entry, one.explained, runtime.clock.now()))
    if not waits and run is None:
        waits = (phrases.sentence(reasons.explanation(responses.situation_of(view))),)
    if one.conflicts:
        waits += (phrase("Will conflict with {}.", phrases.pulls(one.conflicts)),)
    return OpenRow(
        name=_name(view.queue.repo, entry.pr),
        branch=view.queue.branch,
        path=page_addresses.pull_request(home, view.queue.branch, entry.pr),
        queue_path=page_addresses.queue(home, view.queue.branch),
        view=view,
        mark=marks.of_entry(entry, is_failing=view.failing is not None),
        waits=waits,
        checks=() if run is None else line.checks_of(run),
        who=who,
        is_theirs=who == entry.facts.author,
    )


def _ended(options: Options, one: LeftSubmission) -> EndedRow:
    home, entry = page_addresses.home(options, one.queue.repo), one.left.entry
    return EndedRow(
        name=_name(one.queue.repo, entry.pr),
        branch=one.queue.branch,
        path=page_addresses.pull_request(home, one.queue.branch, entry.pr),
        queue_path=page_addresses.queue(home, one.queue.branch),
        row=page_of_queue.left_row(one.left, one.value),
    )


def _name(repo: RepoRef, number: int) -> str:
    return f"{repo.name}#{number}"
