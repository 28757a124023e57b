"""The GraphQL documents, and the reading of their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.github import limits
from bot.github.client import RepositoryClient
from bot.github.reading import BOT, Fields, time_of
from bot.github.wire import Answer
from service.provenance import ProviderTime
from service.provider.errors import Gone, GoneKind, NotPermitted, Unavailable
from service.provider.values import Commit, ForcePush, PullRequest
from service.vocabulary import Approval, Mergeability, PullRequestState, Sha

PAGES_MAX = 10
SWEPT_MAX = 50  # pull requests in one document
NO_COMMIT = Sha("0" * 40)

STATES = {
    "OPEN": PullRequestState.OPEN,
    "CLOSED": PullRequestState.CLOSED,
    "MERGED": PullRequestState.MERGED,
}
MERGEABILITIES = {
    "MERGEABLE": Mergeability.MERGEABLE,
    "CONFLICTING": Mergeability.NOT_MERGEABLE,
    "UNKNOWN": Mergeability.IN_PROGRESS,
}

# The fields of one pull request. Its checks are beside the fragment, not in it: whether one is
# required can only be asked with the pull request's own number.
FIELDS = """
fragment PullRequestFields on PullRequest {
  number title body url state isDraft merged updatedAt
  author { __typename login ... on User { databaseId } ... on Bot { databaseId } }
  labels(first: 100) { nodes { name } }
  baseRefName
  timelineItems(
    last: 1, itemTypes: [AUTOMATIC_BASE_CHANGE_SUCCEEDED_EVENT, BASE_REF_CHANGED_EVENT]
  ) {
    nodes {
      ... on AutomaticBaseChangeSucceededEvent { createdAt }
      ... on BaseRefChangedEvent { createdAt }
    }
  }
  forcePushes: timelineItems(last: 1, itemTypes: [HEAD_REF_FORCE_PUSHED_EVENT]) {
    nodes { ... on HeadRefForcePushedEvent { createdAt afterCommit { oid } } }
  }
  baseRef {
    target { oid ... on Commit { tree { oid } parents(first: 10) { nodes { oid } } } }
  }
  headRefName headRefOid isCrossRepository
  headRepository { nameWithOwner }
  mergeCommit { oid } mergedAt
  mergeable mergeStateStatus reviewDecision
  autoMergeRequest { enabledAt }
  files(first: 100) { nodes { path changeType } pageInfo { hasNextPage } }
  reviewThreads(first: 100, after: $threads) {
    nodes { isResolved } pageInfo { hasNextPage endCursor }
  }
}
"""
CHECKS = """
  statusCheckRollup {
    contexts(first: 100, after: $contexts) {
      nodes {
        __typename
        ... on CheckRun {
          name status conclusion startedAt completedAt isRequired(pullRequestNumber: $number)
          checkSuite { app { databaseId name } }
        }
        ... on StatusContext {
          context state isRequired(pullRequestNumber: $number)
          creator { login ... on User { databaseId } ... on Bot { databaseId } }
        }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
"""
# Rules of entry, commit texts and the evidence of a landing need them.
APPROVALS = """
  latestOpinionatedReviews(first: 100, writersOnly: true) {
    nodes { state submittedAt commit { oid } author { login ... on User { databaseId } } }
  }
"""

PULL_REQUEST_FACTS = f"""
query PullRequestFacts(
  $owner: String!, $name: String!, $number: Int!, $contexts: String, $threads: String
) {{
  repository(owner: $owner, name: $name) {{
    id
    pullRequest(number: $number) {{ ...PullRequestFields {CHECKS} {APPROVALS} }}
  }}
}}
{FIELDS}
"""

# First pages only: the cursors are declared for the shared text and never given.
SWEPT_PULL_REQUEST_FACTS = f"""
query SweptPullRequestFacts(
  $owner: String!, $name: String!, $contexts: String, $threads: String
) {{
  repository(owner: $owner, name: $name) {{
    id
    %s
  }}
}}
{FIELDS}
"""

REPOSITORY_ID = """
query RepositoryId($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) { id }
}
"""

MERGE_QUEUE = """
query MergeQueue($owner: String!, $name: String!, $branch: String!) {
  repository(owner: $owner, name: $name) { mergeQueue(branch: $branch) { id } }
}
"""

IS_QUEUED = """
query IsInMergeQueue($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isInMergeQueue } }
}
"""

ADVANCE = """
mutation Advance($repository: ID!, $updates: [RefUpdate!]!) {
  updateRefs(input: {repositoryId: $repository, refUpdates: $updates}) { clientMutationId }
}
"""


@dataclass(frozen=True, slots=True)
class Context:
    """One report in the roll-up of a head; a commit status has no conclusion, App or times.

    `account` is the id of the account that set a status, `author` its login or the App's name.
    """

    name: str
    is_run: bool
    status: str
    conclusion: str | None
    is_required: bool
    app_id: str | None
    started_at: datetime | None
    completed_at: datetime | None
    account: str | None = None
    author: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """A pull request without blockers and checks, and further facts from GraphQL.

    `merge_state` and `review_decision` are GitHub's words. `files_complete` is false after a
    rename too, since the old name is not reported.
    """

    pull: PullRequest
    base: Commit | None
    merge_state: str
    review_decision: str
    files: tuple[str, ...]
    files_complete: bool
    has_open_thread: bool
    contexts: tuple[Context, ...]
    repository_node: str
    contexts_complete: bool = True
    deleted_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """One error inside a 200."""

    type: str
    message: str
    depth: int


async def facts(client: RepositoryClient, number: int) -> Facts:
    """Read one pull request with 1,100 of its checks and threads. Raises Gone(PULL_REQUEST)."""
    repository, pull = await _page(client, number, None, None)
    found = _facts_of(pull, repository.text("id"))
    contexts, threads = _next(_contexts(pull)), _next(pull.inner_or_none("reviewThreads"))
    for _ in range(PAGES_MAX):
        if contexts is None and threads is None:
            break
        _, pull = await _page(client, number, contexts, threads)
        more = _facts_of(pull, found.repository_node)
        found = replace(
            found,
            contexts=found.contexts + (more.contexts if contexts else ()),
            has_open_thread=found.has_open_thread or more.has_open_thread,
        )
        # The list that has ended is read from its beginning again: its next page is known.
        contexts = _next(_contexts(pull)) if contexts else None
        threads = _next(pull.inner_or_none("reviewThreads")) if threads else None
    return replace(found, contexts_complete=contexts is None)


async def facts_of_many(
    client: RepositoryClient, numbers: Sequence[int]
) -> dict[int, Facts | None]:
    """Read at most 50 pull requests by one document, None for one that is gone.

    One with more checks or threads than a page holds is read by itself.
    """
    named = "\n".join(_aliased(number) for number in numbers)
    data = await _query(client, SWEPT_PULL_REQUEST_FACTS % named, _name(client))
    repository = await _shown(client, data)
    found: dict[int, Facts | None] = {}
    for number in numbers:
        pull = repository.inner_or_none(_alias(number))
        if pull is not None and _has_more(pull):
            found[number] = await _facts_or_none(client, number)
        else:
            found[number] = None if pull is None else _facts_of(pull, repository.text("id"))
    return found


async def repository(
    client: RepositoryClient, document: str, variables: Mapping[str, object]
) -> Fields:
    """Return the repository of a document's answer. Raises Gone(REPOSITORY)."""
    return await _shown(client, await _query(client, document, {**_name(client), **variables}))


async def has_merge_queue(client: RepositoryClient, branch: str) -> bool:
    """Return whether GitHub's own merge queue owns a branch.

    Raises Unavailable on hosts without such a queue.
    """
    data = await _query(client, MERGE_QUEUE, {**_name(client), "branch": branch})
    repository = data.inner_or_none("repository")
    return repository is not None and repository.inner_or_none("mergeQueue") is not None


async def is_queued(client: RepositoryClient, number: int) -> bool:
    """Return whether a pull request is in GitHub's own merge queue. Raises as `has_merge_queue`."""
    data = await _query(client, IS_QUEUED, {**_name(client), "number": number})
    repository = data.inner_or_none("repository")
    pull = None if repository is None else repository.inner_or_none("pullRequest")
    return pull is not None and pull.flag("isInMergeQueue")


async def repository_node(client: RepositoryClient) -> str:
    """Read the node id that mutations need. Raises Gone(REPOSITORY)."""
    data = await _query(client, REPOSITORY_ID, _name(client))
    repository = data.inner_or_none("repository")
    if repository is None:
        raise Gone(f"{client.repo.slug} is gone.", GoneKind.REPOSITORY)
    return repository.text("id")


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref of an atomic update; `to` NO_COMMIT deletes it."""

    branch: str
    expect: Sha
    to: Sha


async def update_refs(
    client: RepositoryClient, node: str, updates: Sequence[RefUpdate]
) -> tuple[Answer, tuple[Trouble, ...]]:
    """Move several refs at once or none, each from its expected commit; never by force."""
    asked = [
        {
            "name": f"refs/heads/{update.branch}",
            "beforeOid": update.expect,
            "afterOid": update.to,
            "force": False,
        }
        for update in updates
    ]
    variables: dict[str, object] = {"repository": node, "updates": asked}
    answer = await client.graphql(ADVANCE, variables, is_mutation=True)
    return answer, _troubles(answer)


async def _page(
    client: RepositoryClient, number: int, contexts: str | None, threads: str | None
) -> tuple[Fields, Fields]:
    cursors = {"number": number, "contexts": contexts, "threads": threads}
    data = await _query(client, PULL_REQUEST_FACTS, {**_name(client), **cursors})
    repository = await _shown(client, data)
    pull = repository.inner_or_none("pullRequest")
    if pull is None:
        raise Gone(f"Pull request {number} is gone.", GoneKind.PULL_REQUEST)
    return repository, pull


async def _facts_or_none(client: RepositoryClient, number: int) -> Facts | None:
    try:
        return await facts(client, number)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return None


async def _shown(client: RepositoryClient, data: Fields) -> Fields:
    """Return the repository of an answer, or raise why it is absent."""
    repository = data.inner_or_none("repository")
    if repository is None:
        await client.get("")  # says whether the repository or our access to it is gone
        raise Unavailable("GitHub does not show the repository.", client.clock.now())
    return repository


def _alias(number: int) -> str:
    return f"pr_{number}"


def _aliased(number: int) -> str:
    fields = f"...PullRequestFields {CHECKS.replace('$number', str(number))} {APPROVALS}"
    return f"{_alias(number)}: pullRequest(number: {number}) {{ {fields} }}"


def _name(client: RepositoryClient) -> dict[str, object]:
    return {"owner": client.repo.owner, "name": client.repo.name}


async def _query(client: RepositoryClient, document: str, variables: dict[str, object]) -> Fields:
    """Return the answer's data; an error other than "not found" means that it cannot be trusted."""
    answer = await client.graphql(document, variables)
    troubles = _troubles(answer)
    for trouble in troubles:
        if trouble.type == "FORBIDDEN":
            raise NotPermitted(trouble.message)
        if trouble.type != "NOT_FOUND":
            later = client.clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
            raise Unavailable(f"GitHub answered with an error: {trouble.message}", later)
    return answer.fields.inner_or_none("data") or Fields({})


def _troubles(answer: Answer) -> tuple[Trouble, ...]:
    return tuple(
        Trouble(error.words("type"), error.words("message"), len(error.members("path")))
        for error in answer.fields.each("errors")
    )


def _contexts(pull: Fields) -> Fields | None:
    rollup = pull.inner_or_none("statusCheckRollup")
    return None if rollup is None else rollup.inner_or_none("contexts")


def _next(connection: Fields | None) -> str | None:
    if connection is None:
        return None
    page = connection.inner("pageInfo")
    return page.text_or("endCursor", None) if page.flag("hasNextPage") else None


def _has_more(pull: Fields) -> bool:
    pages = (_next(_contexts(pull)), _next(pull.inner_or_none("reviewThreads")))
    return any(cursor is not None for cursor in pages)


def _nodes(holder: Fields, name: str) -> tuple[Fields, ...]:
    connection = holder.inner_or_none(name)
    return () if connection is None else connection.each("nodes")


def _facts_of(pull: Fields, node: str) -> Facts:
    base, contexts = _base_of(pull.inner_or_none("baseRef")), _contexts(pull)
    files = pull.inner_or_none("files")
    return Facts(
        pull=_pull_request_of(pull, base),
        base=base,
        merge_state=pull.words("mergeStateStatus"),
        review_decision=pull.words("reviewDecision"),
        files=tuple(each.text("path") for each in _nodes(pull, "files")),
        files_complete=files is not None and _tells_all(files),
        deleted_files=tuple(
            each.text("path")
            for each in _nodes(pull, "files")
            if each.words("changeType") == "DELETED"
        ),
        has_open_thread=any(not each.flag("isResolved") for each in _nodes(pull, "reviewThreads")),
        contexts=() if contexts is None else tuple(map(_context_of, contexts.each("nodes"))),
        repository_node=node,
    )


def login_of(account: Fields) -> str:
    """Return a login as GitHub shows it to people: its answers leave out `[bot]` of an App.

    A person may have the login that is left, as `renovate`.
    """
    suffix = "[bot]" if account.words("__typename") == BOT else ""
    return account.text("login") + suffix


def _pull_request_of(pull: Fields, base: Commit | None) -> PullRequest:
    author, head_repo = pull.inner_or_none("author"), pull.inner_or_none("headRepository")
    merged = pull.inner_or_none("mergeCommit")
    return PullRequest(
        number=pull.number("number"),
        title=pull.text("title"),
        body=pull.words("body"),
        author="ghost" if author is None else login_of(author),
        state=STATES.get(pull.text("state"), PullRequestState.CLOSED),
        draft=pull.flag("isDraft"),
        base_branch=pull.text("baseRefName"),
        base_tip=None if base is None else base.sha,
        head_branch=pull.text("headRefName"),
        head_sha=Sha(pull.text("headRefOid")),
        head_repo=None if head_repo is None else head_repo.text("nameWithOwner"),
        is_fork=pull.flag("isCrossRepository") or head_repo is None,
        merge_commit=None if merged is None else Sha(merged.text("oid")),
        merged_at=time_of(pull, "mergedAt"),
        mergeability=MERGEABILITIES.get(pull.words("mergeable"), Mergeability.UNSPECIFIED),
        blockers=(),
        labels=tuple(each.text("name") for each in _nodes(pull, "labels")),
        url=pull.text("url"),
        approvals=_approvals(pull),
        author_id=None if author is None else author.id_or_none("databaseId"),
        shown_at=time_of(pull, "updatedAt"),
        base_changed_at=next(
            (time_of(change, "createdAt") for change in _nodes(pull, "timelineItems")), None
        ),
        auto_merge=pull.inner_or_none("autoMergeRequest") is not None,
        force_push=next(map(_force_push_of, _nodes(pull, "forcePushes")), None),
    )


def _force_push_of(event: Fields) -> ForcePush:
    commit = event.inner_or_none("afterCommit")
    to = None if commit is None else Sha(commit.text("oid"))
    return ForcePush(ProviderTime(event.moment("createdAt")), to)


def _approvals(pull: Fields) -> tuple[Approval, ...] | None:
    """Return the reviews that approve it; None where the query asks for none."""
    if pull.inner_or_none("latestOpinionatedReviews") is None:
        return None
    found = []
    for one in _nodes(pull, "latestOpinionatedReviews"):
        author, commit = one.inner_or_none("author"), one.inner_or_none("commit")
        if one.text("state") != "APPROVED" or author is None:
            continue
        head = None if commit is None else Sha(commit.text("oid"))
        by, at = author.id_or_none("databaseId"), one.moment_or_none("submittedAt")
        found.append(Approval(author.text("login"), by, head, at))
    return tuple(found)


def _tells_all(files: Fields) -> bool:
    renamed = {"RENAMED", "COPIED"} & {each.words("changeType") for each in files.each("nodes")}
    return not renamed and not files.inner("pageInfo").flag("hasNextPage")


def _base_of(ref: Fields | None) -> Commit | None:
    target = None if ref is None else ref.inner_or_none("target")
    if target is None:
        return None
    return Commit(
        sha=Sha(target.text("oid")),
        tree=Sha(target.inner("tree").text("oid")),
        parents=tuple(Sha(each.text("oid")) for each in _nodes(target, "parents")),
    )


def _context_of(node: Fields) -> Context:
    is_run = node.words("__typename") == "CheckRun"
    suite = node.inner_or_none("checkSuite")
    app = None if suite is None else suite.inner_or_none("app")
    creator = node.inner_or_none("creator")
    return Context(
        name=node.text("name" if is_run else "context"),
        is_run=is_run,
        status=node.words("status" if is_run else "state").lower(),
        conclusion=node.words("conclusion").lower() or None,
        is_required=node.flag("isRequired"),
        app_id=None if app is None else app.id_or_none("databaseId"),
        started_at=node.moment_or_none("startedAt"),
        completed_at=node.moment_or_none("completedAt"),
        account=None if creator is None else creator.id_or_none("databaseId"),
        author=creator.text("login") if creator else "" if app is None else app.words("name"),
    )
