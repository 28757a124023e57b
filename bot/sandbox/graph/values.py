"""Repositories, commits, pull requests and the checks on their heads as GraphQL values."""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from graphql import GraphQLError, GraphQLResolveInfo

from bot.sandbox import merge_rules, rules, standing
from bot.sandbox.acts import pull_states
from bot.sandbox.git import Signature
from bot.sandbox.records import (
    Account,
    BaseChange,
    CheckRun,
    CheckSuite,
    HeadForcePush,
    Json,
    Kind,
    LabelChange,
    Review,
    Status,
)
from bot.sandbox.shapes import checks, git_data
from bot.sandbox.shapes.people import node_id, when
from bot.sandbox.timeline import stamp
from bot.sandbox.world import PullRequest, Repository

PAGE_MAX = 100
MERGEABLE = {None: "UNKNOWN", True: "MERGEABLE", False: "CONFLICTING"}
CHANGE_TYPES = {
    "added": "ADDED",
    "removed": "DELETED",
    "modified": "MODIFIED",
    "renamed": "RENAMED",
    "changed": "CHANGED",
    "copied": "COPIED",
}
"""The types of changes of a file: the words of REST and those of GraphQL."""


def not_found(message: str) -> GraphQLError:
    """GitHub's error for everything that the caller may not see."""
    return GraphQLError(message, extensions={"type": "NOT_FOUND"})


def connect(items: Sequence[Any], value: Callable[[Any], Json]) -> Callable[..., Json]:
    """A connection over `items`; only those of the requested page are made.

    `first` or `last` is required and at most PAGE_MAX, as at GitHub.
    """

    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        name, last = info.field_name, given.get("last")
        size = given.get("first") if last is None else last
        if size is None:
            message = (
                "You must provide a `first` or `last` value to properly paginate "
                f"the `{name}` connection."
            )
            raise GraphQLError(message, extensions={"type": "MISSING_PAGINATION_BOUNDARIES"})
        if not 0 <= size <= PAGE_MAX:
            message = (
                f"Requesting {size} records on the `{name}` connection exceeds "
                f"the `first` limit of {PAGE_MAX} records."
            )
            raise GraphQLError(message, extensions={"type": "EXCESSIVE_PAGINATION"})
        low = _place(given.get("after")) + 1 if last is None else max(len(items) - last, 0)
        high = min(len(items), low + size)
        has_next = high < len(items)
        end = b64encode(f"cursor:{high - 1}".encode()).decode() if low < high else None
        return {
            "totalCount": len(items),
            "nodes": [value(item) for item in items[low:high]],
            "pageInfo": {"hasNextPage": has_next, "endCursor": end},
        }

    return page


def _place(cursor: str | None) -> int:
    if cursor is None:
        return -1
    try:
        return int(b64decode(cursor).decode().removeprefix("cursor:"))
    except ValueError:
        message = f"`{cursor}` does not appear to be a valid cursor."
        extensions = {"type": "INVALID_CURSOR_ARGUMENTS"}
        raise GraphQLError(message, extensions=extensions) from None


def account(one: Account) -> Json:
    """A user, bot or organization; a bot's login has no `[bot]` in GraphQL."""
    return {
        "__typename": one.kind.value,
        "id": node_id(one.kind, one.id),
        "databaseId": one.id,
        "login": one.login.removesuffix("[bot]") if one.kind is Kind.BOT else one.login,
    }


def repository(one: Repository) -> Json:
    """A repository, with its pull requests."""
    return {
        "id": node_id("Repository", one.id),
        "databaseId": one.id,
        "nameWithOwner": one.full_name,
        "mergeQueue": lambda _, branch=None: merge_queue(one, branch or one.default_branch),
        "object": lambda _, oid: commit(one, oid) if one.git.objects.commit(oid) else None,
        "pullRequest": lambda _, number: _pull_request(one, number),
        "pullRequests": _pull_requests(one),
    }


def _pull_requests(one: Repository) -> Callable[..., Json]:
    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        head = given.pop("headRefName", None)
        pulls = [issue.pull for issue in one.issues.values() if issue.pull is not None]
        chosen = [pull for pull in pulls if head in (None, pull.head_ref)]
        return connect(chosen, pull_request)(info, **given)

    return page


def merge_queue(one: Repository, branch: str) -> Json | None:
    """GitHub's own merge queue of a branch, by a rule or by classic protection."""
    is_queued = merge_rules.has_queue(one, branch)
    return {"id": node_id("MergeQueue", f"{one.id}:{branch}")} if is_queued else None


def commit(one: Repository, sha: str | None) -> Json | None:
    """A commit with its tree and its parents."""
    if sha is None:
        return None
    value = one.git.objects.a_commit(sha)
    return {
        "__typename": "Commit",
        "oid": sha,
        "authors": connect(git_data.authors(value), lambda author: _git_actor(one, author)),
        "tree": {"oid": value.tree},
        "parents": connect(value.parents, lambda parent: {"oid": parent}),
        "history": _history(one, sha),
        "status": lambda _: _status(one, sha),
        "checkSuites": connect(one.suites.get(sha, ()), lambda suite: _suite(one, suite)),
    }


def _git_actor(one: Repository, author: Signature) -> Json:
    known = git_data.account_of(one.world, author)
    is_user = known is not None and known.kind is Kind.USER
    user = account(known) if known is not None and is_user else None
    return {"name": author.name, "email": author.email, "user": user}


def _history(one: Repository, sha: str) -> Callable[..., Json]:
    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        return connect(one.git.objects.log(sha), lambda each: {"oid": each.sha})(info, **given)

    return page


def _status(one: Repository, sha: str) -> Json | None:
    words = {standing.of_status(status) for status in standing.latest_statuses(one, sha)}
    return {"state": _state(words)} if words else None


def _state(words: set[str]) -> str:
    return "FAILURE" if "failing" in words else "PENDING" if "pending" in words else "SUCCESS"


def _suite(one: Repository, suite: CheckSuite) -> Json:
    def runs(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        is_all = given.pop("filterBy", {}).get("checkType") == "ALL"
        chosen = suite.runs if is_all else standing.latest(suite.runs)
        return connect(chosen, lambda run: _run(one, run))(info, **given)

    return {
        "databaseId": suite.id,
        "status": standing.suite_state(suite)[0].upper(),
        "app": _app_of(suite),
        "checkRuns": runs,
    }


def _app_of(suite: CheckSuite) -> Json | None:
    return None if suite.app.is_gone else {"databaseId": suite.app.id, "name": suite.app.name}


def _run(one: Repository, run: CheckRun) -> Json:
    shown = checks.check_run(one, run)
    return {
        **_context(one, run),
        "databaseId": run.id,
        "detailsUrl": shown["details_url"],
        "permalink": shown["html_url"],
    }


def _pull_request(one: Repository, number: int) -> Json:
    issue = one.issues.get(number)
    if issue is None or issue.pull is None:
        raise not_found(f"Could not resolve to a PullRequest with the number of {number}.")
    return pull_request(issue.pull)


def pull_request(pull: PullRequest) -> Json:
    """A pull request. `mergeable` is UNKNOWN until GitHub has computed it."""
    one, closed = pull.repository, "MERGED" if pull.merged else "CLOSED"
    labels = [{"name": name} for name in pull.labels]

    def commits(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        listed = pull_states.commits_of(pull)
        return connect(listed, lambda each: {"commit": commit(one, each.sha)})(info, **given)

    async def files(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        return connect(await pull_states.changed_files(pull), _changed_file)(info, **given)

    return {
        "number": pull.number,
        "url": pull.page,
        "title": pull.title,
        "body": pull.body or "",
        "author": account(pull.author),
        "state": "OPEN" if pull.open else closed,
        "isDraft": pull.draft,
        "closedAt": when(pull.closed_at),
        "updatedAt": when(pull.updated_at),
        "merged": pull.merged,
        "mergeable": MERGEABLE[pull.mergeable],
        "mergeStateStatus": lambda _: merge_rules.merge_state(pull),
        "reviewDecision": lambda _: merge_rules.review_decision(pull),
        "isInMergeQueue": pull.queued,
        "headRefName": pull.head_ref,
        "headRefOid": pull.head_sha,
        "headRepository": lambda _: repository(pull.head_repo),
        "isCrossRepository": pull.head_repo is not one,
        "baseRefName": pull.base_ref,
        "baseRefOid": pull.base_sha,
        "baseRef": lambda _: {"target": commit(one, pull.base_tip)} if pull.base_tip else None,
        "mergeCommit": lambda _: commit(one, pull.merge_commit),
        "statusCheckRollup": lambda _: rollup(one, pull.head_sha),
        "commits": commits,
        "files": files,
        "labels": connect(labels, dict),
        "reviews": connect(pull.reviews, partial(_review, one)),
        "latestOpinionatedReviews": _opinionated(one, pull),
        "timelineItems": _timeline(pull),
        "reviewThreads": connect(pull.threads, lambda one: {"isResolved": one.is_resolved}),
    }


def _timeline(pull: PullRequest) -> Callable[..., Json]:
    """The changes of its labels and of its base, and force pushes of its head, oldest first."""

    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        kinds = given.pop("itemTypes", None)
        pushes = [_force_push(pull, push) for push in pull.force_pushes]
        shown = [*map(_label_change, pull.label_changes), *map(_base_change, pull.base_changes)]
        shown += pushes
        shown.sort(key=lambda one: str(one["createdAt"]))
        chosen = [one for one in shown if kinds is None or one["kind"] in kinds]
        return connect(chosen, dict)(info, **given)

    return page


def _item_type(change: BaseChange) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", change.event).upper()


def _base_change(change: BaseChange) -> Json:
    created = stamp(change.at)
    return {"__typename": change.event, "kind": _item_type(change), "createdAt": created}


def _force_push(pull: PullRequest, push: HeadForcePush) -> Json:
    return {
        "__typename": "HeadRefForcePushedEvent",
        "kind": "HEAD_REF_FORCE_PUSHED_EVENT",
        "createdAt": stamp(push.at),
        "beforeCommit": lambda _: commit(pull.repository, push.before),
        "afterCommit": lambda _: commit(pull.repository, push.after),
    }


def _opinionated(one: Repository, pull: PullRequest) -> Callable[..., Json]:
    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        found = merge_rules.opinions(pull, of_writers=given["writersOnly"])
        return connect(found, partial(_review, one))(info, **given)

    return page


def _label_change(change: LabelChange) -> Json:
    name = "LabeledEvent" if change.added else "UnlabeledEvent"
    return {
        "__typename": name,
        "kind": "LABELED_EVENT" if change.added else "UNLABELED_EVENT",
        "id": node_id(name, change.id),
        "actor": account(change.account),
        "createdAt": stamp(change.at),
        "label": {"name": change.label.name},
    }


def _review(one: Repository, review: Review) -> Json:
    edited = review.edited_at
    return {
        "commit": lambda _: commit(one, review.commit),
        "databaseId": review.id,
        "body": review.body,
        "author": account(review.author),
        "state": review.state,
        "submittedAt": stamp(review.submitted_at),
        "lastEditedAt": None if edited is None else stamp(edited),
    }


def _changed_file(change: Any) -> Json:
    return {"path": change.path, "changeType": CHANGE_TYPES[change.status]}


def rollup(one: Repository, sha: str) -> Json | None:
    """The newest check runs and statuses on a commit; None without any."""
    runs = standing.latest(one.check_runs(sha))
    statuses = standing.latest_statuses(one, sha)
    if not runs and not statuses:
        return None
    words = {standing.of_run(run) for run in runs}
    words |= {standing.of_status(status) for status in statuses}
    return {
        "state": _state(words),
        "contexts": connect([*runs, *statuses], lambda item: _context(one, item)),
    }


def _context(one: Repository, item: CheckRun | Status) -> Json:
    if isinstance(item, Status):
        return {
            "__typename": "StatusContext",
            "context": item.context,
            "creator": account(item.creator),
            "state": item.state.upper(),
            "isRequired": _is_required(one, item.context, item.creator.app_id),
        }
    return {
        "__typename": "CheckRun",
        "name": item.name,
        "status": item.status.upper(),
        "conclusion": item.conclusion.upper() if item.conclusion else None,
        "startedAt": when(item.started_at),
        "completedAt": when(item.completed_at),
        "isRequired": _is_required(one, item.name, item.suite.app.id),
        "checkSuite": {"app": _app_of(item.suite)},
    }


def _is_required(one: Repository, name: str, app_id: int | None) -> Callable[..., bool]:
    def is_required(_: Any, **given: Any) -> bool:
        issue = one.issues.get(given.get("pullRequestNumber", 0))
        if issue is None or issue.pull is None:
            return False
        required = rules.required(one, issue.pull.base_ref)
        return any(each.name == name and each.app_id in (None, app_id) for each in required)

    return is_required
