"""Accounts, Apps and installations as JSON."""

from base64 import b64decode, b64encode

from bot.sandbox.records import Account, App, Installation, Json, Kind
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World


def api(world: World) -> str:
    """The root of all REST addresses."""
    return f"{world.web}/api/v3"


def node_id(kind: str, number: int | str) -> str:
    """An opaque id for GraphQL; it can be read back by `number_of`."""
    return b64encode(f"{kind}:{number}".encode()).decode()


def number_of(kind: str, node: str) -> int | None:
    """The last number inside an opaque id of that kind; None for any other text."""
    try:
        found, _, number = b64decode(node).decode().partition(":")
        return int(number.rpartition(":")[2]) if found == kind else None
    except ValueError:
        return None


def account(world: World, one: Account) -> Json:
    """The provider's simple user."""
    url = f"{api(world)}/users/{one.login}"
    return {
        "login": one.login,
        "id": one.id,
        "node_id": node_id(one.kind, one.id),
        "avatar_url": f"{world.web}/_sandbox/avatar/{one.id}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{world.web}/{one.login}",
        "followers_url": f"{url}/followers",
        "following_url": f"{url}/following{{/other_user}}",
        "gists_url": f"{url}/gists{{/gist_id}}",
        "starred_url": f"{url}/starred{{/owner}}{{/repo}}",
        "subscriptions_url": f"{url}/subscriptions",
        "organizations_url": f"{url}/orgs",
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events{{/privacy}}",
        "received_events_url": f"{url}/received_events",
        "type": one.kind.value,
        "site_admin": False,
        "user_view_type": "public",
    }


def public_user(world: World, one: Account) -> Json:
    """The whole public profile."""
    owned = sum(1 for repository in world.repositories.values() if repository.owner is one)
    profile = dict.fromkeys(("company", "blog", "location", "email", "hireable", "bio"))
    return {
        **account(world, one),
        **profile,
        "name": one.login.capitalize(),
        "public_repos": owned,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.created_at),
    }


def organization(world: World, one: Account) -> Json:
    """The provider's simple organization, as webhooks carry it."""
    url = f"{api(world)}/orgs/{one.login}"
    return {
        "login": one.login,
        "id": one.id,
        "node_id": node_id(one.kind, one.id),
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": f"{world.web}/_sandbox/avatar/{one.id}",
        "description": None,
    }


def app(world: World, one: App) -> Json:
    """A registered App."""
    return {
        "id": one.id,
        "slug": one.slug,
        "node_id": node_id("App", one.id),
        "client_id": one.client_id,
        "owner": account(world, one.owner),
        "name": one.name,
        "description": None,
        "external_url": f"{world.web}/apps/{one.slug}",
        "html_url": f"{world.web}/apps/{one.slug}",
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.created_at),
        "permissions": dict(one.permissions),
        "events": list(one.events),
        "installations_count": sum(1 for i in world.installations.values() if i.app is one),
    }


def installation(world: World, one: Installation) -> Json:
    """The App on one owner."""
    url = f"{api(world)}/app/installations/{one.id}"
    suspended = one.suspended_at
    return {
        "id": one.id,
        "account": account(world, one.account),
        "repository_selection": "all" if one.repositories is None else "selected",
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{api(world)}/installation/repositories",
        "html_url": f"{world.web}/settings/installations/{one.id}",
        "app_id": one.app.id,
        "client_id": one.app.client_id,
        "target_id": one.account.id,
        "target_type": one.account.kind.value,
        "permissions": dict(one.permissions),
        "events": list(one.app.events),
        "created_at": stamp(one.created_at),
        "updated_at": stamp(suspended or one.created_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "app_slug": one.app.slug,
        "suspended_by": account(world, one.account) if suspended else None,
        "suspended_at": stamp(suspended) if suspended else None,
    }


def repository_name(one: Repository) -> Json:
    """A repository as installation webhooks name it."""
    return {
        "id": one.id,
        "node_id": node_id("Repository", one.id),
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
    }


def owner_is_organization(one: Repository) -> bool:
    """Return whether webhooks of this repository carry an organization."""
    return one.owner.kind is Kind.ORGANIZATION
