"""Repositories, branches, rules and labels as JSON."""

from urllib.parse import quote

from bot.sandbox.git import Commit
from bot.sandbox.records import Account, Classic, Json, Label, Ruleset
from bot.sandbox.shapes import git_data, people
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World

PATHS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


def minimal(one: Repository) -> Json:
    """A repository inside another answer."""
    url = git_data.address(one)
    return {
        "id": one.id,
        "node_id": people.node_id("Repository", one.id),
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
        "owner": people.account(one.world, one.owner),
        "html_url": f"{one.world.web}/{one.full_name}",
        "description": None,
        "fork": one.parent is not None,
        "url": url,
        **{name: f"{url}{path}" for name, path in PATHS.items()},
    }


def repository(one: Repository) -> Json:
    """A repository as lists, pull requests and webhooks show it."""
    web = f"{one.world.web}/{one.full_name}"
    forks = sum(1 for other in one.world.repositories.values() if other.parent == one.id)
    unclosed = sum(1 for issue in one.issues.values() if issue.open)
    return {
        **minimal(one),
        "git_url": f"git:{web.partition(':')[2]}.git",
        "ssh_url": f"git@github.localhost:{one.full_name}.git",
        "clone_url": f"{web}.git",
        "svn_url": web,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "forks": forks,
        "forks_count": forks,
        "stargazers_count": 0,
        "watchers": 0,
        "watchers_count": 0,
        "size": 0,
        "default_branch": one.default_branch,
        "open_issues": unclosed,
        "open_issues_count": unclosed,
        "is_template": False,
        "topics": [],
        "has_issues": one.settings.issues,
        "has_projects": True,
        "has_wiki": True,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "archived": one.archived,
        "disabled": False,
        "visibility": "private" if one.private else "public",
        "pushed_at": stamp(one.pushed_at),
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.pushed_at),
        "allow_forking": True,
        "web_commit_signoff_required": False,
    }


def full(one: Repository, role: str) -> Json:
    """A repository asked for by itself, with what the caller may do there."""
    chosen = one.settings
    parent = one.world.repositories.get(one.parent) if one.parent is not None else None
    answer = {
        **repository(one),
        "allow_merge_commit": chosen.merge_commit,
        "allow_squash_merge": chosen.squash,
        "allow_rebase_merge": chosen.rebase,
        "allow_auto_merge": False,
        "allow_update_branch": False,
        "delete_branch_on_merge": chosen.delete_head,
        "squash_merge_commit_title": chosen.squash_title,
        "squash_merge_commit_message": chosen.squash_message,
        "merge_commit_title": chosen.merge_title,
        "merge_commit_message": chosen.merge_message,
        "use_squash_pr_title_as_default": chosen.squash_title == "PR_TITLE",
        "network_count": 0,
        "subscribers_count": 0,
        "permissions": permissions(role),
    }
    if parent is not None:
        answer["parent"] = answer["source"] = repository(parent)
    if people.owner_is_organization(one):
        answer["organization"] = people.account(one.world, one.owner)
    return answer


def permissions(role: str) -> Json:
    """The five rights that a role stands for."""
    order = ("read", "triage", "write", "maintain", "admin")
    level = order.index(role) if role in order else -1
    words = ("pull", "triage", "push", "maintain", "admin")
    return {word: level >= place for place, word in enumerate(words)}


def collaborator_permission(one: Repository, account: Account) -> Json:
    """A role; `permission` knows only four words, as at the provider."""
    role = one.role_of(account)
    folded = {"maintain": "write", "triage": "read"}.get(role, role)
    user = {
        **people.account(one.world, account),
        "permissions": permissions(role),
        "role_name": role,
    }
    return {"permission": folded, "role_name": role, "user": user}


def label(one: Repository, shown: Label) -> Json:
    """A label."""
    return {
        "id": shown.id,
        "node_id": people.node_id("Label", shown.id),
        "url": f"{git_data.address(one)}/labels/{quote(shown.name)}",
        "name": shown.name,
        "description": shown.description,
        "color": shown.color,
        "default": False,
        "archived_at": None,
        "archived_by": None,
    }


def protection(one: Repository, branch: str) -> Json:
    """The short protection that a branch carries with it."""
    classic = one.protected.get(branch)
    url = f"{git_data.address(one)}/branches/{branch}/protection"
    checks = classic.checks if classic is not None else None
    shown: Json = {"enforcement_level": "off", "contexts": [], "checks": []}
    if checks is not None:
        shown = {**check_list(checks), "enforcement_level": "non_admins"}
    return {"enabled": classic is not None, "url": url, "required_status_checks": shown}


def check_list(checks: list[tuple[str, int | None]]) -> Json:
    """Required checks by name and, where pinned, App."""
    return {
        "contexts": [name for name, _ in checks],
        "checks": [{"context": name, "app_id": app} for name, app in checks],
    }


def status_check_policy(one: Repository, branch: str, classic: Classic) -> Json:
    """Classic protection's required checks, asked for by themselves."""
    url = f"{git_data.address(one)}/branches/{branch}/protection/required_status_checks"
    return {
        "url": url,
        "strict": classic.strict,
        **check_list(classic.checks or []),
        "contexts_url": f"{url}/contexts",
    }


def whole_protection(one: Repository, branch: str, classic: Classic) -> Json:
    """Classic protection as a whole; it says nothing of merge queues and deployments."""
    url = f"{git_data.address(one)}/branches/{branch}/protection"
    shown: Json = {
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
        shown["required_status_checks"] = status_check_policy(one, branch, classic)
    if classic.approvals is not None:
        shown["required_pull_request_reviews"] = {
            "url": f"{url}/required_pull_request_reviews",
            "dismiss_stale_reviews": classic.dismiss_stale,
            "require_code_owner_reviews": classic.code_owners,
            "require_last_push_approval": classic.last_push_approval,
            "required_approving_review_count": classic.approvals,
            **_passing(one.world, classic),
        }
    if classic.pushers is not None:
        named = classic.pushers
        shown["restrictions"] = {
            "url": f"{url}/restrictions",
            "users_url": f"{url}/restrictions/users",
            "teams_url": f"{url}/restrictions/teams",
            "apps_url": f"{url}/restrictions/apps",
            "users": [
                people.account(one.world, account)
                for account in one.world.accounts.values()
                if account.login in named
            ],
            "teams": [],
            "apps": [
                people.app(one.world, app) for app in one.world.apps.values() if app.slug in named
            ],
        }
    return shown


def _passing(world: World, classic: Classic) -> Json:
    """Return who may bypass the rules about pull requests; empty when it names no one."""
    apps = [
        people.app(world, app) for app in world.apps.values() if app.slug in classic.bypass_apps
    ]
    if not apps:
        return {}
    return {"bypass_pull_request_allowances": {"users": [], "teams": [], "apps": apps}}


def short_branch(one: Repository, name: str, protected: bool) -> Json:
    """A branch in a list."""
    sha = one.git.branch(name) or ""
    return {
        "name": name,
        "commit": {"sha": sha, "url": f"{git_data.address(one)}/commits/{sha}"},
        "protected": protected,
        "protection": protection(one, name),
        "protection_url": f"{git_data.address(one)}/branches/{name}/protection",
    }


def branch(one: Repository, name: str, commit: Commit) -> Json:
    """A branch asked for by itself."""
    protected = name in one.protected or any(
        ruleset.enforcement == "active" for ruleset in one.rulesets
    )
    return {
        **short_branch(one, name, protected),
        "commit": git_data.commit(one, commit),
        "_links": {
            "self": f"{git_data.address(one)}/branches/{name}",
            "html": f"{one.world.web}/{one.full_name}/tree/{name}",
        },
    }


def ruleset(one: Repository, shown: Ruleset, *, whole: bool) -> Json:
    """A ruleset; only the single one shows conditions, rules and bypass actors."""
    url = f"{git_data.address(one)}/rulesets/{shown.id}"
    answer: Json = {
        "id": shown.id,
        "node_id": people.node_id("RepositoryRuleset", shown.id),
        "name": shown.name,
        "target": "branch",
        "source_type": "Repository",
        "source": one.full_name,
        "enforcement": shown.enforcement,
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.created_at),
        "_links": {
            "self": {"href": url},
            "html": {"href": f"{one.world.web}/{one.full_name}/rules/{shown.id}"},
        },
    }
    if whole:
        names = {"include": shown.include, "exclude": shown.exclude}
        answer["conditions"] = {"ref_name": names}
        answer["rules"] = [dict(rule) for rule in shown.rules]
        answer["bypass_actors"] = [dict(actor) for actor in shown.bypass_actors]
    return answer
