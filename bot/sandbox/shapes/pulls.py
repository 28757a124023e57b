"""Issues, pull requests, comments, reviews and reactions as JSON."""

from collections import Counter

from bot.sandbox import merge_rules
from bot.sandbox.merges import FileChange
from bot.sandbox.records import Account, Comment, Issue, Json, Pull, Reaction, Review, Stack, Thread
from bot.sandbox.shapes import git_data, people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def association(one: Repository, who: Account) -> str:
    """Return the association of an author with the repository."""
    if who is one.owner:
        return "OWNER"
    return "COLLABORATOR" if one.role_of(who) not in ("none", "read") else "NONE"


def labels(one: Repository, issue: Issue) -> list[Json]:
    """The labels of an issue, in the order they were added."""
    return [repositories.label(one, one.labels[name.lower()]) for name in issue.labels]


def reaction_rollup(url: str, reactions: list[Reaction]) -> Json:
    """Return the number of reactions of each kind."""
    counts = Counter(reaction.content for reaction in reactions)
    return {
        "url": f"{url}/reactions",
        "total_count": len(reactions),
        **{word: counts[word] for word in REACTIONS},
    }


def reaction(world: World, shown: Reaction) -> Json:
    """One reaction."""
    return {
        "id": shown.id,
        "node_id": people.node_id("Reaction", shown.id),
        "user": people.account(world, shown.account),
        "content": shown.content,
        "created_at": stamp(shown.created_at),
    }


def comment(one: Repository, issue: Issue, shown: Comment) -> Json:
    """One comment."""
    url = f"{git_data.address(one)}/issues/comments/{shown.id}"
    return {
        "id": shown.id,
        "node_id": people.node_id("IssueComment", shown.id),
        "url": url,
        "html_url": f"{page(one, issue)}#issuecomment-{shown.id}",
        "issue_url": f"{git_data.address(one)}/issues/{issue.number}",
        "user": people.account(one.world, shown.author),
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.updated_at),
        "author_association": association(one, shown.author),
        "body": shown.body,
        "performed_via_github_app": people.app(one.world, shown.via) if shown.via else None,
        "reactions": reaction_rollup(url, shown.reactions),
    }


def page(one: Repository, issue: Issue) -> str:
    """The address of the page a person opens."""
    kind = "pull" if issue.pull is not None else "issues"
    return f"{one.world.web}/{one.full_name}/{kind}/{issue.number}"


def issue(one: Repository, shown: Issue) -> Json:
    """An issue; a pull request is one too, told by `pull_request`."""
    url = f"{git_data.address(one)}/issues/{shown.number}"
    web = page(one, shown)
    answer: Json = {
        "id": shown.id,
        "node_id": people.node_id("Issue", shown.id),
        "url": url,
        "repository_url": git_data.address(one),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": web,
        "number": shown.number,
        "state": "open" if shown.open else "closed",
        "state_reason": None if shown.open or shown.pull else "completed",
        "title": shown.title,
        "body": shown.body,
        "user": people.account(one.world, shown.author),
        "labels": labels(one, shown),
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "locked": shown.locked,
        "active_lock_reason": None,
        "comments": len(shown.comments),
        "closed_at": stamp(shown.closed_at) if shown.closed_at else None,
        "closed_by": people.account(one.world, shown.closed_by) if shown.closed_by else None,
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.updated_at),
        "author_association": association(one, shown.author),
        "performed_via_github_app": people.app(one.world, shown.via) if shown.via else None,
        "reactions": reaction_rollup(url, shown.reactions),
    }
    if shown.pull is not None:
        merged = shown.pull.merged_at
        answer["draft"] = shown.pull.draft
        answer["pull_request"] = {
            "url": f"{git_data.address(one)}/pulls/{shown.number}",
            "html_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "merged_at": stamp(merged) if merged else None,
        }
    return answer


def _links(one: Repository, shown: Issue, pull: Pull) -> dict[str, str]:
    api = git_data.address(one)
    url = f"{api}/pulls/{shown.number}"
    issue_url = f"{api}/issues/{shown.number}"
    return {
        "self": url,
        "html": page(one, shown),
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{api}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{api}/statuses/{pull.head_sha}",
    }


def pull_simple(one: Repository, shown: Issue, pull: Pull) -> Json:
    """A pull request in a list: no mergeability, no counts."""
    web = page(one, shown)
    links = _links(one, shown, pull)
    head_repo = one.world.repositories.get(pull.head_repo) if pull.head_repo is not None else None
    return {
        "url": links["self"],
        "id": shown.id,
        "node_id": people.node_id("PullRequest", f"{one.id}:{shown.number}"),
        "html_url": web,
        "diff_url": f"{web}.diff",
        "patch_url": f"{web}.patch",
        "issue_url": links["issue"],
        "commits_url": links["commits"],
        "review_comments_url": links["review_comments"],
        "review_comment_url": links["review_comment"],
        "comments_url": links["comments"],
        "statuses_url": links["statuses"],
        "number": shown.number,
        "state": "open" if shown.open else "closed",
        "locked": shown.locked,
        "active_lock_reason": None,
        "title": shown.title,
        "user": people.account(one.world, shown.author),
        "body": shown.body,
        "labels": labels(one, shown),
        "milestone": None,
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.updated_at),
        "closed_at": stamp(shown.closed_at) if shown.closed_at else None,
        "merged_at": stamp(pull.merged_at) if pull.merged_at else None,
        "merge_commit_sha": pull.merge_commit or pull.test_merge,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "draft": pull.draft,
        "head": {
            "label": f"{pull.head_owner.login}:{pull.head_ref}",
            "ref": pull.head_ref,
            "sha": pull.head_sha,
            "user": people.account(one.world, pull.head_owner),
            "repo": repositories.repository(head_repo) if head_repo else None,
        },
        "base": {
            "label": f"{one.owner.login}:{pull.base_ref}",
            "ref": pull.base_ref,
            "sha": pull.base_sha,
            "user": people.account(one.world, one.owner),
            "repo": repositories.repository(one),
        },
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": association(one, shown.author),
        "auto_merge": None,
        **_stacked(one, shown),
    }


def _stacked(one: Repository, shown: Issue) -> Json:
    """The field `stack`, which only a pull request of a native stack carries."""
    found = one.stack_of(shown.number)
    return {} if found is None else {"stack": stack_of_pull(one, shown, found)}


def stack_of_pull(one: Repository, shown: Issue, found: Stack) -> Json:
    """A native stack as one of its pull requests shows it; position 1 is the bottom."""
    trunk = trunk_of(one, found)
    return {
        "id": found.id,
        "number": found.number,
        "size": len(found.members),
        "position": found.members.index(shown.number) + 1,
        "base": {"ref": trunk, "sha": one.git.branch(trunk) or ""},
    }


def trunk_of(one: Repository, found: Stack) -> str:
    """The branch that the bottom of a stack is based on."""
    bottom = one.issues[found.members[0]].pull
    return bottom.base_ref if bottom is not None else one.default_branch


def stack(one: Repository, found: Stack) -> Json:
    """A native stack asked for by itself, its pull requests from the bottom up."""
    members = [one.issues[number] for number in found.members]
    listed = [(issue, issue.pull) for issue in members if issue.pull is not None]
    return {
        "id": found.id,
        "number": found.number,
        "node_id": people.node_id("PullRequestStack", found.id),
        "url": f"{git_data.address(one)}/stacks/{found.number}",
        "base": {"ref": trunk_of(one, found)},
        "open": any(issue.open for issue in members),
        "created_at": stamp(found.created_at),
        "pull_requests": [
            {
                "number": issue.number,
                "state": "open" if issue.open else "closed",
                "draft": pull.draft,
                "merged_at": stamp(pull.merged_at) if pull.merged_at else None,
                "head": {"ref": pull.head_ref, "sha": pull.head_sha},
            }
            for issue, pull in listed
        ],
    }


def pull(one: Repository, shown: Issue, files: tuple[FileChange, ...]) -> Json:
    """A pull request asked for by itself, or in a webhook; `files` are its changes."""
    inner = shown.pull
    if inner is None:
        raise ValueError(f"#{shown.number} is no pull request")
    state = merge_rules.merge_state(one, shown, inner).lower()
    base = one.git.branch(inner.base_ref)
    commits = one.git.objects.log(inner.head_sha, without=base or inner.base_sha)
    return {
        **pull_simple(one, shown, inner),
        "merged": inner.merged_at is not None,
        "mergeable": inner.mergeable,
        "rebaseable": inner.mergeable,
        "mergeable_state": "unknown" if shown.merged else state,
        "merged_by": people.account(one.world, inner.merged_by) if inner.merged_by else None,
        "comments": len(shown.comments),
        "review_comments": len(inner.threads),
        "maintainer_can_modify": False,
        "commits": len(commits),
        "additions": sum(change.additions for change in files),
        "deletions": sum(change.deletions for change in files),
        "changed_files": len(files),
    }


def review(one: Repository, shown: Issue, given: Review) -> Json:
    """One review."""
    web = f"{page(one, shown)}#pullrequestreview-{given.id}"
    url = f"{git_data.address(one)}/pulls/{shown.number}"
    return {
        "id": given.id,
        "node_id": people.node_id("PullRequestReview", given.id),
        "user": people.account(one.world, given.author),
        "body": given.body,
        "state": given.state,
        "html_url": web,
        "pull_request_url": url,
        "_links": {"html": {"href": web}, "pull_request": {"href": url}},
        "submitted_at": stamp(given.submitted_at),
        "commit_id": given.commit,
        "author_association": association(one, given.author),
    }


def thread(one: Repository, shown: Issue, of: Thread) -> Json:
    """A conversation on the code, with its first comment."""
    url = f"{git_data.address(one)}/pulls"
    web = f"{page(one, shown)}#discussion_r{of.id}"
    pull_url = f"{url}/{shown.number}"
    head = shown.pull.head_sha if shown.pull is not None else ""
    comment_shown = {
        "id": of.id,
        "node_id": people.node_id("PullRequestReviewComment", of.id),
        "url": f"{url}/comments/{of.id}",
        "html_url": web,
        "pull_request_url": pull_url,
        "pull_request_review_id": None,
        "diff_hunk": "@@ -1 +1 @@",
        "path": of.path,
        "position": 1,
        "original_position": 1,
        "line": 1,
        "original_line": 1,
        "side": "RIGHT",
        "start_line": None,
        "original_start_line": None,
        "start_side": None,
        "subject_type": "line",
        "commit_id": head,
        "original_commit_id": head,
        "user": people.account(one.world, of.author),
        "body": of.body,
        "created_at": stamp(shown.updated_at),
        "updated_at": stamp(shown.updated_at),
        "author_association": association(one, of.author),
        "reactions": reaction_rollup(f"{url}/comments/{of.id}", []),
        "_links": {
            "self": {"href": f"{url}/comments/{of.id}"},
            "html": {"href": web},
            "pull_request": {"href": pull_url},
        },
    }
    return {
        "node_id": people.node_id("PullRequestReviewThread", of.id),
        "comments": [comment_shown],
    }
