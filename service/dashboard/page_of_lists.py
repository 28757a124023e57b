"""The pages that list a queue's submissions and test runs, as figures and charts lead to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

from service.accounts import page_addresses
from service.accounts.tenants import RepositoryRecord
from service.dashboard import line, marks, page_of_queue
from service.dashboard.marks import Mark
from service.dashboard.page_of_queue import LeftRow
from service.errors import Malformed
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL, EntryState, RunStatus
from service.mergequeue.operations import history_lists, queue_access
from service.mergequeue.operations.history_lists import PastPage, RunSpan, SubmissionFilter
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.wording import endings, history
from service.runtime import Runtime
from service.text.phrases import Phrase

TEXT_MAX = 200
"""Characters of a search."""

STATES: Mapping[str, frozenset[EntryState]] = {
    "": frozenset(EntryState),
    "merged": frozenset({EntryState.MERGED}),
    "failed": frozenset({EntryState.FAILED}),
    "removed": frozenset({EntryState.CANCELLED}),
    "queued": frozenset(EntryState) - FINAL,
}
"""The states that the filter keeps; the first is what a page without it lists."""

STATUSES: Mapping[str, RunStatus | None] = {
    "": None,
    "passed": RunStatus.SUCCEEDED,
    "failed": RunStatus.FAILED,
    "stopped": RunStatus.CANCELLED,
    "running": RunStatus.IN_PROGRESS,
}
REASONS = frozenset(Reason)

_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime(9999, 12, 31, tzinfo=UTC)
_PULLS = ("q", "state", "reason", "since", "until", "at")
_RUNS = ("status", "since", "until", "at")


@dataclass(frozen=True, slots=True)
class PastList:
    """The part that both lists have: `given` is the filter as the query has it."""

    branch: str
    given: Mapping[str, str]
    total: int
    next_cursor: str | None

    @property
    def is_first(self) -> bool:
        """Return whether the page is the first of its list."""
        return "cursor" not in self.given

    @property
    def filters(self) -> Mapping[str, str]:
        """The filter without the place of the page."""
        return {name: text for name, text in self.given.items() if name != "cursor"}

    @property
    def kept(self) -> Mapping[str, str]:
        """The filters that have no field of their own in the form."""
        return {k: v for k, v in self.filters.items() if k in ("since", "until", "at", "reason")}

    @property
    def times(self) -> tuple[tuple[str, datetime], ...]:
        """The times of the filter, with the word before each."""
        words = {"since": "from", "until": "to", "at": "at"}
        return tuple(
            (word, _time(name, self.given[name]))
            for name, word in words.items()
            if name in self.given
        )

    def query(self, cursor: str) -> str:
        """Return the query of another page of the list."""
        return urlencode({**self.filters, "cursor": cursor})

    def counted(self, what: str) -> str:
        """`12 pull requests`."""
        return f"{self.total:,} {what}{'' if self.total == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class PullsPage(PastList):
    """Submissions, the newest first."""

    rows: tuple[LeftRow, ...]

    @property
    def heading(self) -> str:
        """`12 pull requests merged`."""
        words = {"queued": " in the queue", "removed": " left without a verdict"}
        state = self.given.get("state", "")
        was = " in the queue" if "at" in self.given and not state else ""
        return self.counted("pull request") + (words.get(state) or (f" {state}" if state else was))

    @property
    def reason(self) -> str:
        """Why they left, in words; empty: for any reason."""
        reason = self.given.get("reason", "")
        return endings.label(Reason(reason)) if reason else ""


class RunRow(NamedTuple):
    """A test run: what it tested, on what, and for which purpose."""

    run: Run
    mark: Mark
    on: Phrase
    purpose: str


@dataclass(frozen=True, slots=True)
class RunsPage(PastList):
    """Test runs, the newest first."""

    rows: tuple[RunRow, ...]

    @property
    def heading(self) -> str:
        """`7 test runs in progress`."""
        words = {"": "", "running": " in progress", "stopped": " stopped without a verdict"}
        status = self.given.get("status", "")
        was = " in progress" if "at" in self.given and not status else ""
        return self.counted("test run") + (was or words.get(status, f" {status}"))


async def read_pulls(
    runtime: Runtime, repository: RepositoryRecord, segment: str, query: Mapping[str, str]
) -> PullsPage:
    """Return the page that a query asks for.

    Raises NotFound(queue_not_found), Malformed for a wrong filter or page token.
    """
    given = _given(query, (*_PULLS, "cursor"))
    text, reason = given.get("q", ""), given.get("reason")
    if len(text) > TEXT_MAX or "\0" in text:
        raise Malformed(f"A search takes at most {TEXT_MAX} characters.")
    if reason is not None and reason not in REASONS:
        raise Malformed("The filter `reason` takes a reason for which pull requests leave a queue.")
    wanted = SubmissionFilter(
        states=STATES[_choice("state", given, STATES)],
        reason=None if reason is None else Reason(reason),
        ended=_span(given),
        at=_time("at", given["at"]) if "at" in given else None,
        text=text,
    )
    branch = page_addresses.branch_of(segment)
    queue = await queue_access.queue_in(runtime, repository, branch)
    page = await history_lists.submissions(runtime, queue, wanted, given.get("cursor"))
    now = runtime.clock.now()
    rows = tuple(_row(each, page.queue, now) for each in page.rows)
    return PullsPage(branch, given, page.total, page.next_cursor, rows)


async def read_runs(
    runtime: Runtime, repository: RepositoryRecord, segment: str, query: Mapping[str, str]
) -> RunsPage:
    """Return the page that a query asks for. Raises as `read_pulls`."""
    given = _given(query, (*_RUNS, "cursor"))
    wanted = RunSpan(
        finished=_span(given),
        at=_time("at", given["at"]) if "at" in given else None,
        status=STATUSES[_choice("status", given, STATUSES)],
    )
    branch = page_addresses.branch_of(segment)
    queue = await queue_access.queue_in(runtime, repository, branch)
    page: PastPage[Run] = await history_lists.runs(runtime, queue, wanted, given.get("cursor"))
    rows = tuple(
        RunRow(run, marks.of_run(run), line.stacked_on(page.queue, run), history.purpose(run.kind))
        for run in page.rows
    )
    return RunsPage(branch, given, page.total, page.next_cursor, rows)


def in_span(start: datetime, end: datetime) -> dict[str, str]:
    """Return the filter of what ended in a span, for the address of a list."""
    return {"since": _text(start), "until": _text(end)}


def at_time(at: datetime) -> dict[str, str]:
    """Return the filter of what was there at a time."""
    return {"at": _text(at)}


def address(page: str, **given: str) -> str:
    """Return the address of a list, as pages of the queue link to it."""
    return f"{page}?{urlencode(given, safe=':')}"


def _row(left: LeftEntry, value: MergeQueue, now: datetime) -> LeftRow:
    entry = left.entry
    if entry.state in FINAL:
        return page_of_queue.left_row(left, value)
    return LeftRow(entry, marks.of_entry(entry), Phrase(), now - entry.submitted_at, None)


def _given(query: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: query[name].strip() for name in names if query.get(name, "").strip()}


def _choice(name: str, given: Mapping[str, str], choices: Mapping[str, object]) -> str:
    text = given.get(name, "")
    if text not in choices:
        words = ", ".join(f'"{word}"' for word in choices if word)
        raise Malformed(f"The filter `{name}` takes {words}, or nothing.")
    return text


def _span(given: Mapping[str, str]) -> tuple[datetime, datetime] | None:
    if "since" not in given and "until" not in given:
        return None
    since = _time("since", given["since"]) if "since" in given else _ALWAYS
    return since, _time("until", given["until"]) if "until" in given else _NEVER


def _time(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Malformed(
            f"The filter `{name}` takes a time such as 2026-11-24 or 2026-11-24T13:00Z."
        ) from None


def _text(at: datetime) -> str:
    """Return a time of UTC as a filter has it, as short as it may be."""
    if (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0):
        return f"{at:%Y-%m-%d}"
    is_whole = not (at.second or at.microsecond)
    return f"{at:%Y-%m-%dT%H:%M}Z" if is_whole else f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
