"""The page of one test run: what it tests, what reported, and what became of it."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.dashboard import line, marks
from service.dashboard.marks import Mark
from service.mergequeue.api import testing as answers
from service.mergequeue.engine.checked import CheckedName, Ended
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import MergeQueue, Run
from service.mergequeue.engine.states import RunKind
from service.mergequeue.operations import testing
from service.mergequeue.operations.page_of_run import PageOfRun
from service.mergequeue.operations.views import TestingView
from service.mergequeue.wording import checked_names, endings, failed_tests, history
from service.text import phrases
from service.text.phrases import Phrase
from service.vocabulary import Check, CheckKind

_NAMED_IN_COUNTS = (Ended.EXCUSED, Ended.OPTIONAL, Ended.SKIPPED, Ended.FAILED)

REPORTS_MAX = 200
"""Reports that are not required, on one page."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report, or a required status without one; `took` None: it is not over.

    `more` says why a required status counts although it did not simply pass.
    """

    name: str
    url: str
    mark: Mark
    kind: str
    source: str
    raw: str
    started_at: datetime | None
    took: timedelta | None
    more: Phrase = field(default_factory=Phrase)


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything on the page; `others` are the reports that decide nothing."""

    page: PageOfRun
    mark: Mark
    purpose: str
    on: Phrase
    cause: Phrase
    required: tuple[ReportRow, ...]
    others: tuple[ReportRow, ...]
    others_more: int
    warnings: tuple[Phrase, ...]
    source: Phrase
    gaps: tuple[tuple[str, tuple[str, ...]], ...]
    killed: tuple[Phrase, ...]

    @property
    def queue(self) -> MergeQueue:
        """The queue of the run."""
        return self.page.queue

    @property
    def view(self) -> TestingView:
        """The details of the run."""
        return self.page.view

    @property
    def run(self) -> Run:
        """The run."""
        return self.page.view.run

    @property
    def unbuilt(self) -> str:
        """Why the run has no test branch, in a sentence."""
        if self.run.kind is RunKind.DIRECT:
            return "The head of the pull request contains the tip, so its own checks decide."
        if self.run.finished_at is None:
            return "Its test branch is being made."
        return "It ended before it had a test branch, so CI tested nothing for it."

    @property
    def counts(self) -> str:
        """`1 of 3 required statuses passed, 1 excused, 1 skipped`."""
        ended = [one.ended for one in self.page.view.checked]
        passed = ended.count(Ended.PASSED) + ended.count(Ended.REUSED)
        others = {each: ended.count(each) for each in _NAMED_IN_COUNTS}
        more = "".join(f", {count} {each.value}" for each, count in others.items() if count)
        return f"{passed} of {len(ended)} required statuses passed{more}"


def made_of(page: PageOfRun, now: datetime) -> RunPage:
    """Return the page of this run."""
    run = page.view.run
    names = {one.name for one in run.required}
    others = [_report(one) for one in run.checks if one.name not in names]
    return RunPage(
        page=page,
        mark=marks.of_run(run),
        purpose=history.purpose(run.kind),
        on=line.stacked_on(page.queue, run),
        cause=_cause(page),
        required=_required_of(page.view),
        others=tuple(others[:REPORTS_MAX]),
        others_more=max(0, len(others) - REPORTS_MAX),
        warnings=tuple(checked_names.of_run(run, now)) if run.sha else (),
        source=phrases.source(run.required_source),
        gaps=tuple(testing.unexcused_reasons_of(run).items()),
        killed=tuple(failed_tests.killed_runners(page.view.killed)),
    )


_KINDS = {
    CheckKind.SUITE_RUN: "check run",
    CheckKind.SUITE: "check suite",
    CheckKind.STATUS: "commit status",
}


def _cause(page: PageOfRun) -> Phrase:
    """Return the verdict in a sentence; empty where it would blame one of several."""
    run = page.view.run
    if run.cause is None or (len(run.entries) > 1 and run.cause.record.blames_one):
        return Phrase()
    return endings.verdict(run.cause, page.queue.branch)


def _required_of(view: TestingView) -> tuple[ReportRow, ...]:
    """Return the required statuses, by what counts for each; none if the run needs none."""
    pairs = zip(view.checked, verdict.standings_of(view.run), strict=False)
    return tuple(_required(one, standing, view.run) for one, standing in pairs)


def _required(one: CheckedName, standing: verdict.Standing, run: Run) -> ReportRow:
    mark = marks.of_checked(one) if one.ended is Ended.REUSED else marks.of_standing(standing, run)
    if standing.check is not None:
        return replace(_report(standing.check, mark), more=checked_names.details(one))
    kind = "" if one.reporter is None else _KINDS[one.reporter.kind]
    source = "" if one.reporter is None or not one.reporter.app_id else one.reporter.app_id
    row = ReportRow(one.name, one.url, mark, kind, source and f"App {source}", "", None, None)
    return replace(row, more=checked_names.details(one))


def _report(check: Check, mark: Mark | None = None) -> ReportRow:
    is_over = check.started_at is not None and check.completed_at is not None
    source = f"App {check.source_id}" if check.source_id else ""
    return ReportRow(
        name=check.name,
        url=check.url,
        mark=mark or marks.of_check(check.outcome),
        kind=_KINDS[check.kind],
        source=source,
        raw=answers.WAITING.get(check.raw.upper(), check.raw).lower().replace("_", " "),
        started_at=check.started_at,
        took=check.completed_at - check.started_at
        if is_over and check.completed_at and check.started_at
        else None,
    )
