"""Repositories, branches, protection and rulesets as JSON."""

from bot.sandbox.git import Commit
from bot.sandbox.records import Account, Classic, Json, Ruleset
from bot.sandbox.shapes import git_data, people
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository

LINKS = (
    "assignees branches collaborators comments commits compare contents contributors deployments "
    "downloads events forks hooks issues keys labels languages merges milestones notifications "
    "pulls releases stargazers statuses subscribers subscription tags teams"
)
OTHER_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "blobs_url": "/git/blobs",
    "git_commits_url": "/git/commits",
    "git_refs_url": "/git/refs",
    "git_tags_url": "/git/tags",
    "issue_comment_url": "/issues/comments",
    "issue_events_url": "/issues/events",
    "trees_url": "/git/trees",
}
ABSENT = ("homepage", "language", "license", "mirror_url")
ZERO = ("stargazers_count", "watchers", "watchers_count")


def minimal(one: Repository) -> Json:
    """A repository inside another answer."""
    return {
        **people.repository_name(one),
        "owner": people.account(one.world, one.owner),
        "html_url": one.page,
        "description": None,
        "fork": one.parent is not None,
        "url": one.url,
        **people.links(one.url, LINKS),
        **{name: f"{one.url}{path}" for name, path in OTHER_LINKS.items()},
    }


def repository(one: Repository) -> Json:
    """A repository as lists, pull requests and webhooks show it."""
    forks = sum(other.parent is one for other in one.world.repositories.values())
    unclosed = sum(issue.open for issue in one.issues.values())
    return {
        **minimal(one),
        **dict.fromkeys(ABSENT),
        **dict.fromkeys(ZERO, 0),
        "size": one.size_kib,
        "git_url": f"git:{one.page.partition(':')[2]}.git",
        "ssh_url": f"git@github.localhost:{one.full_name}.git",
        "clone_url": f"{one.page}.git",
        "svn_url": one.page,
        "forks": forks,
        "forks_count": forks,
        "default_branch": one.default_branch,
        "open_issues": unclosed,
        "open_issues_count": unclosed,
        "has_issues": one.settings.issues,
        "has_projects": True,
        "has_wiki": True,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "archived": one.archived,
        "disabled": False,
        "topics": [],
        "visibility": "private" if one.private else "public",
        "pushed_at": stamp(one.pushed_at),
        **people.lifetime(one.created_at, one.pushed_at),
    }


def full(one: Repository, role: str) -> Json:
    """A repository asked for by itself, with the caller's rights."""
    settings = one.settings
    return {
        **repository(one),
        "allow_merge_commit": settings.merge_commit,
        "allow_squash_merge": settings.squash,
        "allow_rebase_merge": settings.rebase,
        "allow_auto_merge": False,
        "delete_branch_on_merge": settings.delete_head,
        "squash_merge_commit_title": settings.squash_title,
        "squash_merge_commit_message": settings.squash_message,
        "merge_commit_title": settings.merge_title,
        "merge_commit_message": settings.merge_message,
        "network_count": 0,
        "subscribers_count": 0,
        "permissions": permissions(role),
    }


def permissions(role: str) -> Json:
    """The five rights that a role includes."""
    order = ("read", "triage", "write", "maintain", "admin")
    level = order.index(role) if role in order else -1
    words = ("pull", "triage", "push", "maintain", "admin")
    return {word: level >= place for place, word in enumerate(words)}


def collaborator_permission(one: Repository, account: Account) -> Json:
    """A role; `permission` has only four words, as at GitHub."""
    role = one.role_of(account)
    folded = {"maintain": "write", "triage": "read"}.get(role, role)
    user = people.account(one.world, account)
    user = {**user, "permissions": permissions(role), "role_name": role}
    return {"permission": folded, "role_name": role, "user": user}


def _check_list(classic: Classic) -> Json:
    """Required checks by name and, where pinned, App."""
    checks = classic.checks or []
    return {
        "contexts": [name for name, _ in checks],
        "checks": [{"context": name, "app_id": app} for name, app in checks],
    }


def status_check_policy(one: Repository, branch: str, classic: Classic) -> Json:
    """Classic protection's required checks, asked for by themselves."""
    url = f"{one.url}/branches/{branch}/protection/required_status_checks"
    return {
        "url": url,
        "strict": classic.strict,
        **_check_list(classic),
        "contexts_url": f"{url}/contexts",
    }


def whole_protection(one: Repository, branch: str, classic: Classic) -> Json:
    """Classic protection as a whole, which omits merge queues and deployments."""
    world, url = one.world, f"{one.url}/branches/{branch}/protection"
    shape: Json = {
        "url": url,
        "required_signatures": {
            "url": f"{url}/required_signatures",
            "enabled": classic.signatures,
        },
        "enforce_admins": {"url": f"{url}/enforce_admins", "enabled": classic.enforce_admins},
        "required_linear_history": {"enabled": classic.linear},
        "allow_force_pushes": {"enabled": classic.force_pushes},
        "allow_deletions": {"enabled": classic.deletions},
        "block_creations": {"enabled": False},
        "required_conversation_resolution": {"enabled": classic.conversations},
        "lock_branch": {"enabled": False},
        "allow_fork_syncing": {"enabled": False},
    }
    if classic.checks is not None:
        shape["required_status_checks"] = status_check_policy(one, branch, classic)
    if classic.approvals is not None:
        reviews = shape["required_pull_request_reviews"] = {
            "url": f"{url}/required_pull_request_reviews",
            "dismiss_stale_reviews": classic.dismiss_stale,
            "require_code_owner_reviews": classic.code_owners,
            "require_last_push_approval": classic.last_push_approval,
            "required_approving_review_count": classic.approvals,
        }
        bypassing = _apps(one, classic.bypass_apps)
        if bypassing:
            allowed = {"users": [], "teams": [], "apps": bypassing}
            reviews["bypass_pull_request_allowances"] = allowed
    if classic.pushers is not None:
        logins, root = classic.pushers, f"{url}/restrictions"
        accounts = [account for account in world.accounts.values() if account.login in logins]
        shape["restrictions"] = {
            "url": root,
            **people.links(root, "users teams apps"),
            "users": [people.account(world, account) for account in accounts],
            "teams": [],
            "apps": _apps(one, logins),
        }
    return shape


def _apps(one: Repository, slugs: list[str]) -> list[Json]:
    return [people.app(one.world, app) for app in one.world.apps.values() if app.slug in slugs]


def protection_rule(one: Repository, branch: str, rule: Classic) -> Json:
    """Classic protection as the webhook `branch_protection_rule` carries it."""
    levels = {
        "allow_deletions": rule.deletions,
        "allow_force_pushes": rule.force_pushes,
        "linear_history_requirement": rule.linear,
        "lock_branch": False,
        "merge_queue": False,
        "pull_request_reviews": rule.approvals is not None,
        "required_deployments": False,
        "required_status_checks": rule.checks is not None,
        "signature_requirement": rule.signatures,
    }
    return {
        "id": one.id,
        "repository_id": one.id,
        "name": branch,
        **people.lifetime(one.world.now()),
        "admin_enforced": rule.enforce_admins,
        "authorized_actor_names": list(rule.pushers or []),
        "authorized_actors_only": rule.pushers is not None,
        "authorized_dismissal_actors_only": False,
        "dismiss_stale_reviews_on_push": rule.dismiss_stale,
        "ignore_approvals_from_contributors": False,
        "require_code_owner_review": False,
        "required_approving_review_count": rule.approvals or 0,
        "required_conversation_resolution_level": _level(rule.conversations),
        "required_status_checks": _check_list(rule)["contexts"],
        "strict_required_status_checks_policy": rule.strict,
        **{f"{name}_enforcement_level": _level(is_on) for name, is_on in levels.items()},
    }


def _level(is_on: bool) -> str:
    return "non_admins" if is_on else "off"


def short_branch(one: Repository, name: str) -> Json:
    """A branch in a list."""
    sha, classic = one.git.branch(name) or "", one.protected.get(name)
    is_protected = any(ruleset.enforcement == "active" for ruleset in one.rulesets)
    url = f"{one.url}/branches/{name}/protection"
    checks: Json = {"enforcement_level": "off", "contexts": [], "checks": []}
    if classic is not None and classic.checks is not None:
        checks = {**_check_list(classic), "enforcement_level": "non_admins"}
    return {
        "name": name,
        "commit": {"sha": sha, "url": f"{one.url}/commits/{sha}"},
        "protected": classic is not None or is_protected,
        "protection": {
            "enabled": classic is not None,
            "url": url,
            "required_status_checks": checks,
        },
        "protection_url": url,
    }


def branch(one: Repository, name: str, commit: Commit) -> Json:
    """A branch asked for by itself, with its commit."""
    links = {"self": f"{one.url}/branches/{name}", "html": f"{one.page}/tree/{name}"}
    shape = short_branch(one, name)
    return {**shape, "commit": git_data.commit(one, commit), "_links": links}


def ruleset(one: Repository, value: Ruleset) -> Json:
    """A ruleset with its conditions, rules and bypass actors."""
    url, page = f"{one.url}/rulesets/{value.id}", f"{one.page}/rules/{value.id}"
    return {
        **people.identity("RepositoryRuleset", value.id),
        "name": value.name,
        "target": "branch",
        "source_type": "Repository",
        "source": one.full_name,
        "enforcement": value.enforcement,
        **people.lifetime(value.created_at),
        "_links": {"self": {"href": url}, "html": {"href": page}},
        "conditions": {"ref_name": {"include": value.include, "exclude": value.exclude}},
        "rules": [dict(rule) for rule in value.rules],
        "bypass_actors": [dict(actor) for actor in value.bypass_actors],
    }
