"""Pull requests and their reviews."""

from functools import partial

from bot.sandbox.acts import merging, pull_requests, pull_states
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.acts.pull_requests import NewPull, NewReview
from bot.sandbox.records import ROLES, Issue, Pull
from bot.sandbox.refusal import invalid, not_found
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route
from bot.sandbox.rules import METHODS
from bot.sandbox.shapes import git_data, pulls

FILES_MAX = 3000
COMMITS_MAX = 250


def pull_of(call: Call) -> tuple[Issue, Pull]:
    """The pull request of the path. Raises Refusal(404)."""
    issue = call.repository.issues.get(int(call.params["number"]))
    if issue is None or issue.pull is None:
        raise not_found()
    return issue, issue.pull


async def list_pulls(call: Call) -> Answer:
    """Pull requests by `state`, `base` and `head`; newest first unless `direction=asc`."""
    state = call.query.get("state", "open")
    base, head = call.query.get("base"), call.query.get("head")
    found = [
        (issue, pull)
        for issue, pull in call.repository.pulls()
        if state in ("all", "open" if issue.open else "closed")
        and base in (None, pull.base_ref)
        and head in (None, f"{pull.head_owner.login}:{pull.head_ref}")
    ]
    if call.query.get("direction", "desc") == "desc":
        found.reverse()
    return Listing(found, lambda one: pulls.pull_simple(call.repository, one[0], one[1]))


async def create_pull(call: Call) -> Answer:
    """Open a pull request."""
    new = NewPull(
        call.text("head"),
        call.text("base"),
        call.text("title"),
        call.optional("body"),
        bool(call.body.get("draft", False)),
    )
    issue = await pull_requests.open_pull(call.repository, call.actor, new)
    return Reply(await _shown(call, issue), 201)


async def _shown(call: Call, issue: Issue) -> dict[str, object]:
    if issue.pull is None:
        raise not_found()
    files = await pull_states.changed_files(call.repository, issue, issue.pull)
    return pulls.pull(call.repository, issue, files)


async def get_pull(call: Call) -> Answer:
    """One pull request."""
    issue, _ = pull_of(call)
    return Reply(await _shown(call, issue))


async def patch_pull(call: Call) -> Answer:
    """Change title, body, state or base; for its author and those who write."""
    issue, _ = pull_of(call)
    actor = call.actor
    role = call.repository.role_of(actor.account)
    is_writer = actor.app is not None or ROLES.index(role) >= ROLES.index("write")
    if not is_writer and actor.account is not issue.author:
        raise not_found()
    await pull_requests.edit(call.repository, actor, issue, call.body)
    return Reply(await _shown(call, issue))


async def list_files(call: Call) -> Answer:
    """The changed files, at most FILES_MAX."""
    issue, pull = pull_of(call)
    repository = call.repository
    files = (await pull_states.changed_files(repository, issue, pull))[:FILES_MAX]
    return Listing(files, lambda one: git_data.changed_file(repository, one, pull.head_sha))


async def list_commits(call: Call) -> Answer:
    """The commits, oldest first, at most COMMITS_MAX."""
    issue, pull = pull_of(call)
    found = pull_states.commits_of(call.repository, issue, pull)[:COMMITS_MAX]
    return Listing(found, partial(git_data.commit, call.repository))


async def list_reviews(call: Call) -> Answer:
    """The reviews, oldest first."""
    issue, pull = pull_of(call)
    return Listing(pull.reviews, partial(pulls.review, call.repository, issue))


async def create_review(call: Call) -> Answer:
    """Review it; a review without `event` would be a draft and is not imitated."""
    issue, _ = pull_of(call)
    new = NewReview(call.text("event"), call.optional("body") or "", call.optional("commit_id"))
    made = pull_requests.review(call.repository, call.actor, issue, new)
    return Reply(pulls.review(call.repository, issue, made))


async def merge_pull(call: Call) -> Answer:
    """Merge it by one of three methods."""
    issue, _ = pull_of(call)
    method = call.optional("merge_method") or "merge"
    if method not in METHODS:
        raise invalid("merge_method is unknown", field="merge_method", resource="PullRequest")
    asked = MergeCall(
        method,
        call.optional("sha"),
        call.optional("commit_title"),
        call.optional("commit_message"),
    )
    sha = await merging.merge_pull(call.repository, call.actor, issue, asked)
    return Reply({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


REPO = "/repos/{owner}/{repo}"
PULL = rf"{REPO}/pulls/{{number:\d+}}"
READ, WRITE = ("pull_requests:read",), ("pull_requests:write",)

ROUTES = (
    Route("GET", f"{REPO}/pulls", list_pulls, READ),
    Route("POST", f"{REPO}/pulls", create_pull, WRITE, role="read"),
    Route("GET", PULL, get_pull, READ),
    Route("PATCH", PULL, patch_pull, WRITE, role="read"),
    Route("GET", f"{PULL}/files", list_files, READ),
    Route("GET", f"{PULL}/commits", list_commits, READ),
    Route("GET", f"{PULL}/reviews", list_reviews, READ),
    Route("POST", f"{PULL}/reviews", create_review, WRITE, role="read"),
    Route("PUT", f"{PULL}/merge", merge_pull, ("contents:write",)),
)
