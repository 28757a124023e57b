"""Pull requests, reviews, conversations on the code and native stacks, issues, labels as JSON."""

from collections import Counter
from urllib.parse import quote

from bot.sandbox import merge_rules
from bot.sandbox.merges import FileChange
from bot.sandbox.records import Account, AsyncMerge, Json, Label, Reaction, Review, Stack, Thread
from bot.sandbox.shapes import people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Comment, Issue, PullRequest, Repository, World

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def pull_simple(one: PullRequest) -> Json:
    """A pull request in a list: no mergeability, no counts."""
    repository = one.repository
    url = f"{repository.url}/pulls/{one.number}"
    issue_url = f"{repository.url}/issues/{one.number}"
    links = {
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{repository.url}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{repository.url}/statuses/{one.head_sha}",
    }
    hrefs = {"self": url, "html": one.page, **links}
    stack_of = repository.stack_of(one.number)
    return {
        **_discussion(one),
        "node_id": people.node_id("PullRequest", f"{repository.id}:{one.number}"),
        "url": url,
        "diff_url": f"{one.page}.diff",
        "patch_url": f"{one.page}.patch",
        **{f"{name}_url": href for name, href in links.items()},
        "merged_at": people.when(one.merged_at),
        "merge_commit_sha": one.merge_commit or one.test_merge,
        "requested_reviewers": [],
        "requested_teams": [],
        "draft": one.draft,
        "head": _end(one.head_repo, one.head_ref, one.head_sha),
        "base": _end(repository, one.base_ref, one.base_sha),
        "_links": {name: {"href": href} for name, href in hrefs.items()},
        "auto_merge": _auto_merge(one),
        **({} if stack_of is None else {"stack": stack(one, stack_of)}),
    }


def _auto_merge(one: PullRequest) -> Json | None:
    if one.auto_merge is None:
        return None
    return {
        "enabled_by": people.account(one.repository.world, one.auto_merge.by),
        "merge_method": "merge",
        "commit_title": one.title,
        "commit_message": one.body or "",
    }


def _end(one: Repository, ref: str, sha: str) -> Json:
    return {
        "label": f"{one.owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": people.account(one.world, one.owner),
        "repo": repositories.repository(one),
    }


def stack(one: PullRequest, value: Stack) -> Json:
    """A native stack as one of its pull requests shows it; position 1 is the bottom."""
    trunk = one.repository.trunk_of(value)
    return {
        "id": value.id,
        "number": value.number,
        "size": len(value.members),
        "position": value.members.index(one.number) + 1,
        "base": {"ref": trunk, "sha": one.repository.git.branch(trunk) or ""},
    }


def whole_stack(repository: Repository, value: Stack) -> Json:
    """A native stack asked for by itself, its members from the bottom up."""
    members = [repository.issues[number].pull for number in value.members]
    return {
        **people.identity("PullRequestStack", value.id),
        "number": value.number,
        "url": f"{repository.url}/stacks/{value.number}",
        "base": {"ref": repository.trunk_of(value)},
        "open": any(one is not None and one.open for one in members),
        "created_at": stamp(value.created_at),
        "pull_requests": [
            {
                "number": one.number,
                "state": "open" if one.open else "closed",
                "draft": one.draft,
                "merged_at": people.when(one.merged_at),
                "head": {"ref": one.head_ref, "sha": one.head_sha},
            }
            for one in members
            if one is not None
        ],
    }


def async_merge(value: AsyncMerge) -> Json:
    """A request of the asynchronous merge API."""
    details: Json = {"message": value.text}
    if value.status == "pending":
        details |= {
            "uuid": value.uuid,
            "merge_method": value.method,
            "merge_action": value.action,
            "expected_head_sha": value.sha,
        }
    if value.landed is not None:
        details["sha"] = value.landed
    return {"status": value.status, "details": details}


def pull(one: PullRequest, files: tuple[FileChange, ...]) -> Json:
    """A pull request asked for by itself, or in a webhook; `files` are its changes."""
    state = merge_rules.last_merge_state(one).lower()
    objects = one.repository.git.objects
    return {
        **pull_simple(one),
        "merged": one.merged,
        "mergeable": one.mergeable,
        "rebaseable": one.mergeable,
        "mergeable_state": "unknown" if one.merged else state,
        "merged_by": people.account_or_none(one.repository.world, one.merged_by),
        "comments": len(one.comments),
        "review_comments": len(one.threads),
        "maintainer_can_modify": False,
        "commits": len(objects.log(one.head_sha, without=one.base_tip or one.base_sha)),
        "additions": sum(change.additions for change in files),
        "deletions": sum(change.deletions for change in files),
        "changed_files": len(files),
    }


def review(one: PullRequest, value: Review) -> Json:
    """One review."""
    page = f"{one.page}#pullrequestreview-{value.id}"
    url = f"{one.repository.url}/pulls/{one.number}"
    return {
        **people.identity("PullRequestReview", value.id),
        "user": people.account(one.repository.world, value.author),
        "body": value.body,
        "state": value.state,
        "html_url": page,
        "pull_request_url": url,
        "_links": {"html": {"href": page}, "pull_request": {"href": url}},
        "submitted_at": stamp(value.submitted_at),
        "commit_id": value.commit,
        "author_association": _association(one.repository, value.author),
    }


def thread(one: PullRequest, value: Thread) -> Json:
    """A conversation on the code, with its first comment."""
    repository = one.repository
    page, pull_url = f"{one.page}#discussion_r{value.id}", f"{repository.url}/pulls/{one.number}"
    url = f"{repository.url}/pulls/comments/{value.id}"
    lines = ("position", "original_position", "line", "original_line")
    comment = {
        **people.identity("PullRequestReviewComment", value.id),
        "url": url,
        "html_url": page,
        "pull_request_url": pull_url,
        "diff_hunk": "@@ -1 +1 @@",
        "path": value.path,
        **dict.fromkeys(lines, 1),
        **dict.fromkeys(("pull_request_review_id", "start_line", "original_start_line")),
        "side": "RIGHT",
        "start_side": None,
        "subject_type": "line",
        "commit_id": one.head_sha,
        "original_commit_id": one.head_sha,
        "user": people.account(repository.world, value.author),
        "body": value.body,
        **people.lifetime(one.updated_at),
        "author_association": _association(repository, value.author),
        "reactions": _reaction_rollup(url, []),
        "_links": {
            "self": {"href": url},
            "html": {"href": page},
            "pull_request": {"href": pull_url},
        },
    }
    node = people.node_id("PullRequestReviewThread", value.id)
    return {"node_id": node, "comments": [comment]}


def _association(one: Repository, author: Account) -> str:
    """Return the association of an author with the repository."""
    if author is one.owner:
        return "OWNER"
    return "COLLABORATOR" if one.role_of(author) not in ("none", "read") else "NONE"


def label(one: Repository, value: Label) -> Json:
    """A label."""
    return {
        **people.identity("Label", value.id),
        "url": f"{one.url}/labels/{quote(value.name)}",
        "name": value.name,
        "color": "ededed",
        "default": False,
        **dict.fromkeys(("description", "archived_at", "archived_by")),
    }


def _reaction_rollup(url: str, reactions: list[Reaction]) -> Json:
    """Return the number of reactions of each kind."""
    counts = Counter(reaction.content for reaction in reactions)
    return {
        "url": f"{url}/reactions",
        "total_count": len(reactions),
        **{word: counts[word] for word in REACTIONS},
    }


def reaction(world: World, value: Reaction) -> Json:
    """One reaction."""
    return {
        **people.identity("Reaction", value.id),
        "user": people.account(world, value.account),
        "content": value.content,
        "created_at": stamp(value.created_at),
    }


def _written_by(value: Comment | Issue) -> Json | None:
    """The App that wrote it; None for a person, and where GitHub does not show it."""
    repository = value.issue.repository if isinstance(value, Comment) else value.repository
    world = repository.world
    return None if world.face.hides_app else people.app_or_none(world, value.via)


def comment(value: Comment) -> Json:
    """One comment."""
    issue, repository = value.issue, value.issue.repository
    url = f"{repository.url}/issues/comments/{value.id}"
    return {
        **people.identity("IssueComment", value.id),
        "url": url,
        "html_url": f"{issue.page}#issuecomment-{value.id}",
        "issue_url": f"{repository.url}/issues/{issue.number}",
        "user": people.account(repository.world, value.author),
        **people.lifetime(value.created_at, value.updated_at),
        "author_association": _association(repository, value.author),
        "body": value.body,
        "performed_via_github_app": _written_by(value),
        "reactions": _reaction_rollup(url, value.reactions),
    }


def _discussion(value: Issue) -> Json:
    """The fields that an issue and a pull request share."""
    repository, world = value.repository, value.repository.world
    return {
        "id": value.id,
        "html_url": value.page,
        "number": value.number,
        "state": "open" if value.open else "closed",
        "locked": value.locked,
        "active_lock_reason": None,
        "title": value.title,
        "body": value.body,
        "user": people.account(world, value.author),
        "labels": [label(repository, repository.labels[name.lower()]) for name in value.labels],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        **people.lifetime(value.created_at, value.updated_at),
        "closed_at": people.when(value.closed_at),
        "author_association": _association(repository, value.author),
    }


def issue(value: Issue) -> Json:
    """An issue; for a pull request, with the field `pull_request`."""
    repository, pull = value.repository, value.pull
    url = f"{repository.url}/issues/{value.number}"
    shape = {
        **_discussion(value),
        "node_id": people.node_id("Issue", value.id),
        "url": url,
        "repository_url": repository.url,
        **people.links(url, "labels comments events timeline"),
        "state_reason": None if value.open or pull else "completed",
        "comments": len(value.comments),
        "closed_by": people.account_or_none(repository.world, value.closed_by),
        "performed_via_github_app": _written_by(value),
        "reactions": _reaction_rollup(url, value.reactions),
    }
    if pull is not None:
        shape["draft"] = pull.draft
        shape["pull_request"] = {
            "url": f"{repository.url}/pulls/{pull.number}",
            "html_url": pull.page,
            "diff_url": f"{pull.page}.diff",
            "patch_url": f"{pull.page}.patch",
            "merged_at": people.when(pull.merged_at),
        }
    return shape
