"""Reports on one commit, check runs and commit statuses, and what those of a head have judged.

A CI run of a pull request tests the head merged with the base of that moment. GitHub does not show
that base: `pull_requests` of a run are those that are open now, with the base they have now. So
the creation of the run is compared with the last change of the base on the timeline. A re-run
repeats the old merge commit and keeps the creation time (docs/design/landing.md 12).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cachetools import TTLCache

from bot.github import ci_runs, graphql, outcomes, reading
from bot.github.client import RepositoryClient
from bot.github.reading import Fields, Person
from service.clock import Clock
from service.provider.ci import CiTrigger, Judged, Subject
from service.provider.errors import Gone, GoneKind, NotPermitted
from service.provider.values import Checks, PullRequest
from service.vocabulary import Check, CheckKind, CheckOutcome, Sha

BASE_HISTORY = """
query BaseHistory($owner: String!, $name: String!, $number: Int!, $head: String!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      timelineItems(last: 1, itemTypes: [
        AUTOMATIC_BASE_CHANGE_SUCCEEDED_EVENT, BASE_REF_CHANGED_EVENT, BASE_REF_DELETED_EVENT,
        BASE_REF_FORCE_PUSHED_EVENT
      ]) {
        nodes {
          ... on AutomaticBaseChangeSucceededEvent { createdAt }
          ... on BaseRefChangedEvent { createdAt }
          ... on BaseRefDeletedEvent { createdAt }
          ... on BaseRefForcePushedEvent { createdAt }
        }
      }
    }
    pullRequests(first: 100, headRefName: $head) {
      nodes { number closedAt headRepository { nameWithOwner } }
      pageInfo { hasNextPage }
    }
  }
}
"""


@dataclass(frozen=True, slots=True)
class BaseHistory:
    """Since when a run of this head branch can only be of this pull request on its present base.

    `since` None: it was never different. `is_known` False: it is different, or unknown.
    """

    since: datetime | None
    is_known: bool = True

    def covers(self, made_at: datetime | None) -> bool:
        """Return whether a run that was made then is of this base; the same second is not."""
        if not self.is_known or self.since is None:
            return self.is_known
        return made_at is not None and made_at > self.since


async def read_judged(
    client: RepositoryClient, pull: PullRequest, checks: Checks
) -> tuple[Judged, ...]:
    """Return each report on the head of a pull request with what it has judged."""
    runs = await _runs(client, pull)
    history = await _history(client, pull)
    return tuple(
        Judged(check, _subject(runs.get(check.group), history, pull)) for check in checks.items
    )


def _subject(run: Fields | None, history: BaseHistory, pull: PullRequest) -> Subject:
    if run is None:
        # Of another CI only the time of the report is known, and not that of what it tested.
        return Subject.MERGE if history.covers(None) else Subject.UNKNOWN
    trigger = outcomes.CI_TRIGGERS.get(run.words("event"), CiTrigger.UNKNOWN)
    if trigger is CiTrigger.HEAD:
        return Subject.HEAD
    is_own = run.words("head_branch") == pull.head_branch and (
        _is_of_head(pull, run.inner_or_none("head_repository"), "full_name")
    )
    is_of_base = is_own and history.covers(run.moment_or_none("created_at"))
    is_merge = trigger is CiTrigger.PULL_REQUEST and is_of_base
    return Subject.MERGE if is_merge else Subject.UNKNOWN


async def _runs(client: RepositoryClient, pull: PullRequest) -> Mapping[str, Fields]:
    """Return the runs of GitHub's own CI on the head, by check suite; none without the right."""
    query = {"head_sha": pull.head_sha}
    try:
        listed, _ = await client.listed("/actions/runs", "workflow_runs", query, is_kept=True)
    except NotPermitted:
        return {}
    return {run.id("check_suite_id"): run for run in listed}


async def _history(client: RepositoryClient, pull: PullRequest) -> BaseHistory:
    """Read changes of the base, and the other pull requests that come from the same branch."""
    named = {"number": pull.number, "head": pull.head_branch}
    shown = await graphql.repository(client, BASE_HISTORY, named)
    own, listed = shown.inner_or_none("pullRequest"), shown.inner("pullRequests")
    if own is None or pull.head_repo is None or listed.inner("pageInfo").flag("hasNextPage"):
        return BaseHistory(None, is_known=False)
    ends = [
        other.moment_or_none("closedAt")
        for other in listed.each("nodes")
        if other.number("number") != pull.number
        and _is_of_head(pull, other.inner_or_none("headRepository"), "nameWithOwner")
    ]
    changes = [one.moment("createdAt") for one in own.inner("timelineItems").each("nodes")]
    known = [*changes, *(end for end in ends if end is not None)]
    return BaseHistory(max(known, default=None), is_known=None not in ends)


def _is_of_head(pull: PullRequest, repository: Fields | None, name: str) -> bool:
    """Return whether this is the repository of the head; a deleted one may be."""
    if repository is None or pull.head_repo is None:
        return repository is None
    return repository.text(name).lower() == pull.head_repo.lower()


# The cost is computed from the suites asked for: 50 cost one point, 100 two; of ten commits with
# 20 each, two.
SUITES_MAX = 50
SUITES_OF_MANY_MAX = 20
COMMITS_MAX = 10
# https://docs.github.com/en/rest/checks/runs#list-check-runs-for-a-git-reference: of a commit with
# more suites, only the runs of the newest ones are listed.
SUITES_LISTED_MAX = 1_000
CHECKS = """
query CommitChecks($owner: String!, $name: String!, %(oids)s) {
  repository(owner: $owner, name: $name) {
    %(commits)s
  }
}
"""
COMMIT = """
    commit_%(place)d: object(oid: $oid_%(place)d) {
      ... on Commit {
        status { state }
        checkSuites(first: %(suites)d) {
          nodes {
            databaseId status
            app { databaseId name }
            checkRuns(first: 100, filterBy: {checkType: ALL}) {
              nodes {
                databaseId name status conclusion detailsUrl permalink startedAt completedAt
              }
              pageInfo { hasNextPage }
            }
          }
          pageInfo { hasNextPage }
        }
      }
    }
"""

BOT_SUFFIX = "[bot]"
GHOST = "ghost"
"""GitHub's name for an account that has been deleted."""
APPS_MAX = 1_000
APPS_KEPT_S = 3_600


@dataclass(frozen=True, slots=True)
class Suite:
    """A check suite: the number of its App, its own, GitHub's word for its state."""

    app_id: str | None
    id: str
    status: str


class Reports:
    """Reads reports; caches only which App a bot's account belongs to."""

    def __init__(self, clock: Clock, app_id: str) -> None:
        self._app_id = app_id
        self._apps: TTLCache[str, str | None] = TTLCache(
            APPS_MAX, APPS_KEPT_S, timer=clock.monotonic_s
        )

    async def checks(
        self, client: RepositoryClient, shas: Sequence[Sha], *, skipped_pass: bool
    ) -> dict[Sha, Checks]:
        """Every report on exactly these commits but our own App's, as GitHub has them now.

        Check runs by one GraphQL query for ten commits, which costs nothing of the REST limit; by
        REST for a commit with more than it returns. Statuses by REST, if there are any, since
        GraphQL leaves out all but the newest of each name. An answer of before is used only where
        GitHub confirms it (304), which costs no call of the primary limit.

        Once a check has passed, also the suites that are not complete, since each may report
        the same name again.

        A commit that GitHub does not know yet has no reports, and they are not complete.
        """
        found: dict[Sha, Checks] = {}
        for first in range(0, len(shas), COMMITS_MAX):
            part = shas[first : first + COMMITS_MAX]
            oids = {f"oid_{place}": sha for place, sha in enumerate(part)}
            shown = await graphql.repository(client, _document(len(part)), oids)
            for place, sha in enumerate(part):
                commit = shown.inner_or_none(f"commit_{place}")
                found[sha] = await self._of(client, sha, commit, skipped_pass=skipped_pass)
        return found

    async def _of(
        self, client: RepositoryClient, sha: Sha, commit: Fields | None, *, skipped_pass: bool
    ) -> Checks:
        if commit is None:
            return Checks(sha, (), complete=False)
        web = f"{client.github.options.addresses.web}/{client.repo.slug}/commit/{sha}"
        connection = commit.inner_or_none("checkSuites")
        if connection is not None and not _is_whole(connection):
            found, is_complete = await self._listed(client, sha, web, skipped_pass=skipped_pass)
        else:
            suites = () if connection is None else connection.each("nodes")
            found, is_complete = self._shown(suites, web, skipped_pass=skipped_pass), True
        if commit.inner_or_none("status") is not None:
            statuses, all_statuses = await client.listed(f"/commits/{sha}/statuses", is_kept=True)
            is_complete = is_complete and all_statuses
            for each in statuses:
                creator = reading.person_of(each.inner_or_none("creator"))
                found.append(
                    _check_of_status(each, web, creator, await self._app_of(client, creator))
                )
        found = await _with_attempts(client, sha, found)
        return Checks(sha, outcomes.guarded(found), is_complete)

    def _shown(self, suites: Sequence[Fields], web: str, *, skipped_pass: bool) -> list[Check]:
        """Return the runs of a whole answer, and the unfinished suites."""
        found = [
            _check_of_node(run, suite, web, skipped_pass=skipped_pass)
            for suite in suites
            for run in suite.inner("checkRuns").each("nodes")
        ]
        found = [check for check in found if check.source_id != self._app_id]
        shaped = [
            Suite(_app_of_node(suite), suite.id("databaseId"), suite.words("status").lower())
            for suite in suites
        ]
        return found + _open_suites(shaped, found, web)

    async def _listed(
        self, client: RepositoryClient, sha: Sha, web: str, *, skipped_pass: bool
    ) -> tuple[list[Check], bool]:
        """Return the same by REST, and whether these are all runs."""
        tail = f"/commits/{sha}/check-runs"
        runs, is_complete = await client.listed(tail, "check_runs", {"filter": "all"}, is_kept=True)
        found = [_check_of_run(each, web, skipped_pass=skipped_pass) for each in runs]
        found = [check for check in found if check.source_id != self._app_id]
        tail = f"/commits/{sha}/check-suites"
        suites, _ = await client.listed(tail, "check_suites", is_kept=True)
        is_complete = is_complete and len(suites) <= SUITES_LISTED_MAX
        shaped = [
            Suite(reading.app_id_of(suite), suite.id("id"), suite.words("status"))
            for suite in suites
        ]
        return found + _open_suites(shaped, found, web), is_complete

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


def _document(commits: int) -> str:
    """Return the query that reads the reports on this number of commits."""
    places = range(commits)
    suites = SUITES_MAX if commits == 1 else SUITES_OF_MANY_MAX
    return CHECKS % {
        "oids": ", ".join(f"$oid_{place}: GitObjectID!" for place in places),
        "commits": "".join(COMMIT % {"place": place, "suites": suites} for place in places),
    }


def _is_whole(suites: Fields) -> bool:
    """Return whether an answer holds all suites with all their runs."""
    connections = [suites, *(suite.inner("checkRuns") for suite in suites.each("nodes"))]
    return not any(each.inner("pageInfo").flag("hasNextPage") for each in connections)


def _open_suites(suites: Sequence[Suite], runs: Sequence[Check], web: str) -> list[Check]:
    """Return the unfinished suites of the Apps that have reported, once a check has passed.

    Other Apps have empty suites that stay queued for ever: GitHub makes one for each App.
    """
    if not any(map(_has_ended, runs)):
        return []
    apps = {check.source_id for check in runs}
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


async def _with_attempts(client: RepositoryClient, sha: Sha, found: list[Check]) -> list[Check]:
    """Return the reports with the attempts of jobs, where a suite has several of one name.

    Where the jobs cannot be read, all count as jobs of one attempt, so that none replaces another.
    """
    names = Counter((one.group, one.name) for one in found if one.kind is CheckKind.SUITE_RUN)
    suites = frozenset(group for (group, _), count in names.items() if count > 1)
    try:
        attempts = await ci_runs.attempts_of(client, sha, suites)
    except (NotPermitted, Gone) as failure:
        if isinstance(failure, Gone) and failure.kind is not GoneKind.BRANCH:
            raise
        attempts = {one.id: 1 for one in found if one.group in suites}
    return [replace(one, attempt=attempts.get(one.id)) for one in found]


def _has_ended(check: Check) -> bool:
    return check.outcome in (CheckOutcome.PASSED, CheckOutcome.SKIPPED)


def _app_of_node(suite: Fields) -> str | None:
    app = suite.inner_or_none("app")
    return None if app is None else app.id_or_none("databaseId")


def _check_of_node(run: Fields, suite: Fields, web: str, *, skipped_pass: bool) -> Check:
    status = run.text("status").lower()
    conclusion = run.words("conclusion").lower() or None
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=run.text("name"),
        source_id=_app_of_node(suite),
        group=suite.id("databaseId"),
        id=run.id("databaseId"),
        outcome=outcomes.of_run(status, conclusion, skipped_pass=skipped_pass),
        raw=(conclusion or "") if status == outcomes.COMPLETED else status,
        url=run.words("detailsUrl") or run.words("permalink") or web,
        started_at=run.moment_or_none("startedAt"),
        completed_at=run.moment_or_none("completedAt"),
        author=_name_of(suite.inner_or_none("app")),
    )


def _name_of(app: Fields | None) -> str:
    return "" if app is None else app.words("name")


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
        author=_name_of(run.inner_or_none("app")),
    )


def _check_of_status(status: Fields, web: str, creator: Person | None, app_id: str | None) -> Check:
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
        account=GHOST if creator is None else creator.id,
        author=GHOST if creator is None else creator.login,
    )
