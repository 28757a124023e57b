"""Subjects of the reports on a pull request's own head (docs/design/landing.md 12).

A CI run of a pull request tests the head merged with the base of that moment. GitHub does not show
that base: `pull_requests` of a run are those that are open now, with the base they have now. So
the creation of the run is compared with the last change of the base on the timeline. A re-run
repeats the old merge commit and keeps the creation time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.github import graphql, outcomes
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from service.provider.ci import CiTrigger, Judged, Subject
from service.provider.errors import NotPermitted
from service.provider.values import Checks, PullRequest

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


async def judged(client: RepositoryClient, pull: PullRequest, checks: Checks) -> tuple[Judged, ...]:
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
