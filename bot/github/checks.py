"""All reports on one commit: check runs and commit statuses."""

from cachetools import TTLCache

from bot.github import outcomes, reading
from bot.github.client import RepositoryClient
from bot.github.reading import Fields, Person
from service.clock import Clock
from service.provider.errors import Gone, GoneKind, Refused
from service.provider.values import (
    Checks,
)
from service.vocabulary import Check, CheckKind, CheckOutcome, Sha

BOT_SUFFIX = "[bot]"
APPS_MAX = 1_000
APPS_KEPT_S = 3_600


class Reports:
    """Reads reports; caches only which App a bot's account belongs to."""

    def __init__(self, clock: Clock, app_id: str) -> None:
        self._app_id = app_id
        self._apps: TTLCache[str, str | None] = TTLCache(
            APPS_MAX, APPS_KEPT_S, timer=clock.monotonic_s
        )

    async def checks(self, client: RepositoryClient, sha: Sha, *, skipped_pass: bool) -> Checks:
        """Every report on exactly `sha` but our own App's, as GitHub has them now.

        An answer of before is used only where GitHub confirms it (304), which costs no call of the
        primary limit.

        Once a check has passed, also the suites that are not complete, since each may report
        the same name again.

        A commit that GitHub does not know yet has no reports, and they are not complete.
        """
        tail = f"/commits/{sha}/check-runs"
        try:
            runs, all_runs = await client.listed(
                tail, "check_runs", {"filter": "all"}, is_kept=True
            )
        except Refused:
            return Checks(sha, (), complete=False)
        except Gone as gone:
            if gone.kind is GoneKind.BRANCH:
                return Checks(sha, (), complete=False)
            raise
        statuses, all_statuses = await client.listed(f"/commits/{sha}/statuses", is_kept=True)
        web = f"{client.github.options.addresses.web}/{client.repo.slug}/commit/{sha}"
        found = [_check_of_run(each, web, skipped_pass=skipped_pass) for each in runs]
        found = [check for check in found if check.source_id != self._app_id]
        if any(_has_ended(check) for check in found):
            found += await _open_suites(client, sha, found, web)
        for each in statuses:
            creator = reading.person_of(each.inner_or_none("creator"))
            found.append(_check_of_status(each, web, await self._app_of(client, creator)))
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
    return [
        Check(
            kind=CheckKind.SUITE,
            name="",
            source_id=reading.app_id_of(suite),
            group=suite.id("id"),
            id=suite.id("id"),
            outcome=CheckOutcome.RUNNING,
            raw=suite.words("status"),
            url=web,
        )
        for suite in listed
        if reading.app_id_of(suite) in apps and suite.words("status") != outcomes.COMPLETED
    ]


def _has_ended(check: Check) -> bool:
    return check.outcome in (CheckOutcome.PASSED, CheckOutcome.SKIPPED)


def _check_of_run(run: Fields, web: str, *, skipped_pass: bool) -> Check:
    status, conclusion = run.text("status"), run.text_or("conclusion", None)
    suite = run.inner_or_none("check_suite") or Fields({})
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=run.text("name"),
        source_id=reading.app_id_of(run),
        group=suite.id_or_none("id") or "",
        id=run.id("id"),
        outcome=outcomes.of_run(status, conclusion, skipped_pass=skipped_pass),
        raw=(conclusion or "") if status == outcomes.COMPLETED else status,
        url=run.words("details_url") or run.words("html_url") or web,
        started_at=run.moment_or_none("started_at"),
        completed_at=run.moment_or_none("completed_at"),
    )


def _check_of_status(status: Fields, web: str, app_id: str | None) -> Check:
    state = status.text("state")
    return Check(
        kind=CheckKind.STATUS,
        name=status.text("context"),
        source_id=app_id,
        group="",
        id=status.id("id"),
        outcome=outcomes.of_state(state),
        raw=state,
        url=status.words("target_url") or web,
        completed_at=status.moment_or_none("updated_at") or status.moment_or_none("created_at"),
    )
