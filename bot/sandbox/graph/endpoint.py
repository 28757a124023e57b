"""One GraphQL call: its roots, its rights, its values, its errors in the provider's form."""

import inspect
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import graphql
from cachetools import LRUCache, cached
from graphql import DocumentNode, GraphQLError, GraphQLResolveInfo, GraphQLSchema

from bot.sandbox import merge_rules, rules, standing
from bot.sandbox.acts import pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.git import Signature
from bot.sandbox.records import (
    Account,
    App,
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
from bot.sandbox.refusal import Refusal, refused
from bot.sandbox.rest import call as calls
from bot.sandbox.rest.call import Answer, Call, Reply, Route
from bot.sandbox.shapes import checks, git_data
from bot.sandbox.shapes.people import node_id, number_of, when
from bot.sandbox.timeline import stamp
from bot.sandbox.world import PullRequest, Repository

ERROR_TYPES = {401: "FORBIDDEN", 403: "FORBIDDEN", 404: "NOT_FOUND"}
DOCUMENTS_MAX = 500_000
"""Characters of documents that are kept parsed, which takes about 64 times as many bytes."""

_PAGE_MAX = 100
_MERGEABLE = {None: "UNKNOWN", True: "MERGEABLE", False: "CONFLICTING"}
_CHANGE_TYPES = {
    "added": "ADDED",
    "removed": "DELETED",
    "modified": "MODIFIED",
    "renamed": "RENAMED",
    "changed": "CHANGED",
    "copied": "COPIED",
}
"""The types of changes of a file: the words of REST and those of GraphQL."""


@cache
def schema() -> GraphQLSchema:
    """The schema, read once."""
    return graphql.build_schema(Path(__file__).with_name("schema.graphql").read_text())


async def execute(call: Call) -> Answer:
    """Answer one document; errors come with status 200, as at the provider."""
    if isinstance(call.caller, App | None):
        raise refused("auth.graphql")
    document = call.body.get("query")
    if not isinstance(document, str):
        raise refused("graphql.query")
    try:
        read, errors = _read(document)
    except GraphQLError as error:
        return Reply({"errors": [_error(error)]})
    if errors:
        return Reply({"errors": [_error(one) for one in errors]})
    done = graphql.execute(
        schema(),
        read,
        root_value=_roots(call),
        variable_values=call.body.get("variables") or {},
        operation_name=call.body.get("operationName"),
    )
    result = await done if inspect.isawaitable(done) else done
    answer: Json = {}
    if result.data is not None or not result.errors:
        answer["data"] = result.data
    if result.errors:
        answer["errors"] = [_error(one) for one in result.errors]
    return Reply(answer)


_Read = tuple[DocumentNode, Sequence[GraphQLError]]


def _length_of(read: _Read) -> int:
    return len(read[0].loc.source.body) if read[0].loc else 0


@cached(LRUCache[Any, _Read](DOCUMENTS_MAX, _length_of))
def _read(document: str) -> _Read:
    """Parse a document and validate it: clients send the same few again and again.

    Raises GraphQLError where it is no GraphQL.
    """
    read = graphql.parse(document)
    return read, graphql.validate(schema(), read)


def _error(error: GraphQLError) -> Json:
    cause = error.original_error
    if cause is not None and not isinstance(cause, GraphQLError | Refusal):
        raise cause
    shape = error.formatted
    kind = shape.pop("extensions", {}).get("type")
    if isinstance(cause, Refusal):
        kind = ERROR_TYPES.get(cause.status, "UNPROCESSABLE")
    return {**shape, "type": kind} if kind is not None else {**shape}


def _roots(call: Call) -> Json:
    async def update_refs(_: GraphQLResolveInfo[Any], **given: Any) -> Json:
        return await _update_refs(call, given["input"])

    return {
        "repository": lambda _, **given: _repository(call, given["owner"], given["name"]),
        "updateRefs": update_refs,
    }


def _repository(call: Call, owner: str, name: str) -> Json:
    try:
        call.target = calls.repository_of(call.world, call.caller, f"{owner}/{name}")
        calls.check_rights(call, ("pull_requests:read", "contents:read"))
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
        raise _not_found(message) from None
    return _repository_value(call.target)


async def _update_refs(call: Call, given: Json) -> Json:
    number = number_of("Repository", given["repositoryId"])
    repository = call.world.repositories.get(number or 0)
    if repository is None:
        node = given["repositoryId"]
        raise _not_found(f"Could not resolve to a node with the global id of '{node}'.")
    call.target = calls.repository_of(call.world, call.caller, repository.full_name)
    calls.check_rights(call, ("contents:write",))
    moves = [
        Move(one["name"], one["afterOid"], one.get("beforeOid"), bool(one.get("force", False)))
        for one in given["refUpdates"]
    ]
    for move in moves:
        if not move.ref.startswith("refs/"):
            raise refused("ref.short", move.ref)
    async with repository.lock:
        for move in moves:
            now = repository.git.refs.get(move.ref)
            if now is not None and repository.git.objects.commit(move.after) is not None:
                await refs.refuse_workflow_files(repository, call.actor, now, move.after)
        await refs.move(repository, call.actor, moves, How("updateRefs"))
    return {"clientMutationId": given.get("clientMutationId")}


ROUTE = Route("POST", "/graphql", execute, ("app",))


def _not_found(message: str) -> GraphQLError:
    """GitHub's error for everything that the caller may not see."""
    return GraphQLError(message, extensions={"type": "NOT_FOUND"})


def _connect(items: Sequence[Any], value: Callable[[Any], Json]) -> Callable[..., Json]:
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
        if not 0 <= size <= _PAGE_MAX:
            message = (
                f"Requesting {size} records on the `{name}` connection exceeds "
                f"the `first` limit of {_PAGE_MAX} records."
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


def _account(one: Account) -> Json:
    """A user, bot or organization; a bot's login has no `[bot]` in GraphQL."""
    return {
        "__typename": one.kind.value,
        "id": node_id(one.kind, one.id),
        "databaseId": one.id,
        "login": one.login.removesuffix("[bot]") if one.kind is Kind.BOT else one.login,
    }


def _repository_value(one: Repository) -> Json:
    """A repository, with its pull requests."""
    return {
        "id": node_id("Repository", one.id),
        "databaseId": one.id,
        "nameWithOwner": one.full_name,
        "mergeQueue": lambda _, branch=None: _merge_queue(one, branch or one.default_branch),
        "object": lambda _, oid: _commit(one, oid) if one.git.objects.commit(oid) else None,
        "pullRequest": lambda _, number: _numbered_pull_request(one, number),
        "pullRequests": _pull_requests(one),
    }


def _pull_requests(one: Repository) -> Callable[..., Json]:
    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        head = given.pop("headRefName", None)
        pulls = [issue.pull for issue in one.issues.values() if issue.pull is not None]
        chosen = [pull for pull in pulls if head in (None, pull.head_ref)]
        return _connect(chosen, _pull_request)(info, **given)

    return page


def _merge_queue(one: Repository, branch: str) -> Json | None:
    """GitHub's own merge queue of a branch, by a rule or by classic protection."""
    is_queued = merge_rules.has_queue(one, branch)
    return {"id": node_id("MergeQueue", f"{one.id}:{branch}")} if is_queued else None


def _commit(one: Repository, sha: str | None) -> Json | None:
    """A commit with its tree and its parents."""
    if sha is None:
        return None
    value = one.git.objects.a_commit(sha)
    return {
        "__typename": "Commit",
        "oid": sha,
        "authors": _connect(git_data.authors(value), lambda author: _git_actor(one, author)),
        "tree": {"oid": value.tree},
        "parents": _connect(value.parents, lambda parent: {"oid": parent}),
        "history": _history(one, sha),
        "status": lambda _: _status(one, sha),
        "checkSuites": _connect(one.suites.get(sha, ()), lambda suite: _suite(one, suite)),
    }


def _git_actor(one: Repository, author: Signature) -> Json:
    known = git_data.account_of(one.world, author)
    is_user = known is not None and known.kind is Kind.USER
    user = _account(known) if known is not None and is_user else None
    return {"name": author.name, "email": author.email, "user": user}


def _history(one: Repository, sha: str) -> Callable[..., Json]:
    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        return _connect(one.git.objects.log(sha), lambda each: {"oid": each.sha})(info, **given)

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
        return _connect(chosen, lambda run: _run(one, run))(info, **given)

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


def _numbered_pull_request(one: Repository, number: int) -> Json:
    issue = one.issues.get(number)
    if issue is None or issue.pull is None:
        raise _not_found(f"Could not resolve to a PullRequest with the number of {number}.")
    return _pull_request(issue.pull)


def _pull_request(pull: PullRequest) -> Json:
    """A pull request. `mergeable` is UNKNOWN until GitHub has computed it."""
    one, closed = pull.repository, "MERGED" if pull.merged else "CLOSED"
    labels = [{"name": name} for name in pull.labels]

    def commits(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        listed = pull_states.commits_of(pull)
        return _connect(listed, lambda each: {"commit": _commit(one, each.sha)})(info, **given)

    async def files(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        return _connect(await pull_states.changed_files(pull), _changed_file)(info, **given)

    return {
        "number": pull.number,
        "url": pull.page,
        "title": pull.title,
        "body": pull.body or "",
        "author": _account(pull.author),
        "state": "OPEN" if pull.open else closed,
        "isDraft": pull.draft,
        "closedAt": when(pull.closed_at),
        "updatedAt": when(pull.updated_at),
        "merged": pull.merged,
        "mergedAt": when(pull.merged_at),
        "mergeable": _MERGEABLE[pull.mergeable],
        "mergeStateStatus": lambda _: merge_rules.merge_state(pull),
        "reviewDecision": lambda _: merge_rules.review_decision(pull),
        "isInMergeQueue": pull.queued,
        "autoMergeRequest": pull.auto_merge
        and {
            "enabledAt": when(pull.auto_merge.at),
            "enabledBy": _account(pull.auto_merge.by),
        },
        "headRefName": pull.head_ref,
        "headRefOid": pull.head_sha,
        "headRepository": lambda _: _repository_value(pull.head_repo),
        "isCrossRepository": pull.head_repo is not one,
        "baseRefName": pull.base_ref,
        "baseRefOid": pull.base_sha,
        "baseRef": lambda _: {"target": _commit(one, pull.base_tip)} if pull.base_tip else None,
        "mergeCommit": lambda _: _commit(one, pull.merge_commit),
        "statusCheckRollup": lambda _: _rollup(one, pull.head_sha),
        "commits": commits,
        "files": files,
        "labels": _connect(labels, dict),
        "reviews": _connect(pull.reviews, partial(_review, one)),
        "latestOpinionatedReviews": _opinionated(one, pull),
        "timelineItems": _timeline(pull),
        "reviewThreads": _connect(pull.threads, lambda one: {"isResolved": one.is_resolved}),
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
        return _connect(chosen, dict)(info, **given)

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
        "beforeCommit": lambda _: _commit(pull.repository, push.before),
        "afterCommit": lambda _: _commit(pull.repository, push.after),
    }


def _opinionated(one: Repository, pull: PullRequest) -> Callable[..., Json]:
    def page(info: GraphQLResolveInfo[Any], **given: Any) -> Json:
        found = merge_rules.opinions(pull, of_writers=given["writersOnly"])
        return _connect(found, partial(_review, one))(info, **given)

    return page


def _label_change(change: LabelChange) -> Json:
    name = "LabeledEvent" if change.added else "UnlabeledEvent"
    return {
        "__typename": name,
        "kind": "LABELED_EVENT" if change.added else "UNLABELED_EVENT",
        "id": node_id(name, change.id),
        "actor": _account(change.account),
        "createdAt": stamp(change.at),
        "label": {"name": change.label.name},
    }


def _review(one: Repository, review: Review) -> Json:
    edited = review.edited_at
    return {
        "commit": lambda _: _commit(one, review.commit),
        "databaseId": review.id,
        "body": review.body,
        "author": _account(review.author),
        "state": review.state,
        "submittedAt": stamp(review.submitted_at),
        "lastEditedAt": None if edited is None else stamp(edited),
    }


def _changed_file(change: Any) -> Json:
    return {"path": change.path, "changeType": _CHANGE_TYPES[change.status]}


def _rollup(one: Repository, sha: str) -> Json | None:
    """The newest check runs and statuses on a commit; None without any."""
    runs = standing.latest(one.check_runs(sha))
    statuses = standing.latest_statuses(one, sha)
    if not runs and not statuses:
        return None
    words = {standing.of_run(run) for run in runs}
    words |= {standing.of_status(status) for status in statuses}
    return {
        "state": _state(words),
        "contexts": _connect([*runs, *statuses], lambda item: _context(one, item)),
    }


def _context(one: Repository, item: CheckRun | Status) -> Json:
    if isinstance(item, Status):
        return {
            "__typename": "StatusContext",
            "context": item.context,
            "creator": _account(item.creator),
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
