"""All reports on one commit: check runs and commit statuses."""

from dataclasses import dataclass
from datetime import datetime

from cachetools import TTLCache

from bot.github import outcomes, reading
from bot.github.client import RepositoryClient
from bot.github.reading import Fields, Person, RunReport
from service.clock import Clock
from service.provider.errors import Gone, GoneKind, Refused
from service.provider.values import (
    Checks,
)
from service.vocabulary import Check, CheckKind, CheckOutcome, Sha

BOT_SUFFIX = "[bot]"
APPS_MAX = 1_000
APPS_KEPT_S = 3_600


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """One check suite of a commit."""

    id: str
    status: str
    app_id: str | None


@dataclass(frozen=True, slots=True)
class StatusReport:
    """One update of one commit status."""

    id: str
    context: str
    state: str
    creator: Person | None
    url: str
    at: datetime | None


class Reports:
    """Reads reports; remembers only which App is behind the account of a bot."""

    def __init__(self, clock: Clock, app_id: str) -> None:
        self._app_id = app_id
        self._apps: TTLCache[str, str | None] = TTLCache(
            APPS_MAX, APPS_KEPT_S, timer=clock.monotonic_s
        )

    async def checks(self, client: RepositoryClient, sha: Sha, *, skipped_pass: bool) -> Checks:
        """Every report on exactly `sha` but our own App's; never from a cache.

        Once a check has passed, also the suites that are not complete, since each may report
        the same name again.

        A commit that GitHub does not know yet has no reports, and they are not complete.
        """
        tail = f"/commits/{sha}/check-runs"
        try:
            runs, all_runs = await client.listed(tail, "check_runs", {"filter": "all"})
        except Refused:
            return Checks(sha, (), complete=False)
        except Gone as gone:
            if gone.kind is GoneKind.BRANCH:
                return Checks(sha, (), complete=False)
            raise
        statuses, all_statuses = await client.listed(f"/commits/{sha}/statuses")
        web = f"{client.github.options.addresses.web}/{client.repo.slug}/commit/{sha}"
        found: list[Check] = []
        for each in runs:
            run = reading.run_report_of(each)
            if run.app_id != self._app_id:
                found.append(_check_of_run(run, web, skipped_pass=skipped_pass))
        if any(_has_ended(check) for check in found):
            found += await _open_suites(client, sha, found, web)
        for each in statuses:
            status = status_report_of(each)
            found.append(_check_of_status(status, web, await self._app_of(client, status.creator)))
        return Checks(sha, outcomes.guarded(found), all_runs and all_statuses)

    async def _app_of(self, client: RepositoryClient, creator: Person | None) -> str | None:
        """The App of a bot's account, by which a status can satisfy a pin."""
        if creator is None or not creator.is_bot or not creator.login.endswith(BOT_SUFFIX):
            return None
        slug = creator.login.removesuffix(BOT_SUFFIX)
        if slug not in self._apps:
            root = client.github.options.addresses.api
            try:
                answer = await client.get(f"{root}/apps/{slug}", is_kept=True)
            except Gone:
                self._apps[slug] = None
            else:
                self._apps[slug] = answer.fields.id("id")
        return self._apps[slug]


async def _open_suites(
    client: RepositoryClient, sha: Sha, runs: list[Check], web: str
) -> list[Check]:
    """Return the unfinished suites of the Apps that have reported on the commit.

    Other Apps have empty suites that stay queued for ever: GitHub makes one for each App.
    """
    tail = f"/commits/{sha}/check-suites"
    listed, _ = await client.listed(tail, "check_suites", is_kept=True)
    apps = {check.source_id for check in runs}
    suites = [suite_report_of(each) for each in listed]
    return [
        Check(
            kind=CheckKind.SUITE,
            name="",
            source_id=suite.app_id,
            group=suite.id,
            id=suite.id,
            outcome=CheckOutcome.RUNNING,
            raw=suite.status,
            url=web,
        )
        for suite in suites
        if suite.app_id in apps and suite.status != outcomes.COMPLETED
    ]


def _has_ended(check: Check) -> bool:
    return check.outcome in (CheckOutcome.PASSED, CheckOutcome.SKIPPED)


def _check_of_run(run: RunReport, web: str, *, skipped_pass: bool) -> Check:
    completed = run.status == outcomes.COMPLETED
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=run.name,
        source_id=run.app_id,
        group=run.suite,
        id=run.id,
        outcome=outcomes.of_run(run.status, run.conclusion, skipped_pass=skipped_pass),
        raw=(run.conclusion or "") if completed else run.status,
        url=run.url or web,
        started_at=run.started_at,
        completed_at=run.completed_at,
    )


def _check_of_status(status: StatusReport, web: str, app_id: str | None) -> Check:
    outcome = outcomes.of_state(status.state)
    return Check(
        kind=CheckKind.STATUS,
        name=status.context,
        source_id=app_id,
        group="",
        id=status.id,
        outcome=outcome,
        raw=status.state,
        url=status.url or web,
        completed_at=status.at,
    )


def suite_report_of(answer: Fields) -> SuiteReport:
    """A check suite."""
    app = answer.inner_or_none("app")
    return SuiteReport(
        id=answer.id("id"),
        status=answer.words("status"),
        app_id=None if app is None else app.id_or_none("id"),
    )


def status_report_of(answer: Fields) -> StatusReport:
    """A commit status."""
    return StatusReport(
        id=answer.id("id"),
        context=answer.text("context"),
        state=answer.text("state"),
        creator=reading.person_of(answer.inner_or_none("creator")),
        url=answer.words("target_url"),
        at=answer.moment_or_none("updated_at") or answer.moment_or_none("created_at"),
    )
