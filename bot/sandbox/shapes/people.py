"""Accounts, Apps and installations as JSON, and the helpers that every shape uses."""

from base64 import b64decode, b64encode
from datetime import datetime
from urllib.parse import quote

from bot.sandbox.records import Account, App, Installation, Json, Kind
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, World

USER_LINKS = (
    "events followers following gists organizations received_events repos starred subscriptions"
)
ORGANIZATION_LINKS = "events hooks issues members public_members repos"


def node_id(kind: str, number: int | str) -> str:
    """Return an opaque id for GraphQL, which `number_of` reads back."""
    return b64encode(f"{kind}:{number}".encode()).decode()


def number_of(kind: str, node: str) -> int | None:
    """Return the last number inside an opaque id of that kind; None for any other text."""
    try:
        found, _, number = b64decode(node).decode().partition(":")
        return int(number.rpartition(":")[2]) if found == kind else None
    except ValueError:
        return None


def identity(kind: str, number: int) -> Json:
    """The fields `id` and `node_id`."""
    return {"id": number, "node_id": node_id(kind, number)}


def links(url: str, words: str) -> Json:
    """The fields `<word>_url` for words separated by blanks, each an address below `url`."""
    return {f"{word}_url": f"{url}/{word}" for word in words.split()}


def when(at: datetime | None) -> str | None:
    """A time in JSON, None without one."""
    return None if at is None else stamp(at)


def lifetime(created_at: datetime, updated_at: datetime | None = None) -> Json:
    """The fields `created_at` and `updated_at`."""
    return {"created_at": stamp(created_at), "updated_at": stamp(updated_at or created_at)}


def account(world: World, one: Account) -> Json:
    """GitHub's simple user; the page of a bot is that of its App."""
    url = f"{world.api}/users/{quote(one.login)}"
    page = f"apps/{one.login.removesuffix('[bot]')}" if one.kind is Kind.BOT else one.login
    return {
        **identity(one.kind, one.id),
        "login": one.login,
        "avatar_url": f"{world.web}/_sandbox/avatar/{one.id}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{world.web}/{page}",
        **links(url, USER_LINKS),
        "type": one.kind.value,
        "site_admin": False,
        "user_view_type": "public",
    }


def account_or_none(world: World, one: Account | None) -> Json | None:
    """The same for somebody who may be missing."""
    return None if one is None else account(world, one)


def public_user(world: World, one: Account) -> Json:
    """The whole public profile."""
    owned = [repository for repository in world.repositories.values() if repository.owner is one]
    return {
        **account(world, one),
        **dict.fromkeys(("company", "blog", "location", "email", "hireable", "bio")),
        **dict.fromkeys(("public_gists", "followers", "following"), 0),
        "name": one.login.capitalize(),
        "public_repos": len(owned),
        **lifetime(one.created_at),
    }


def organization(world: World, one: Account) -> Json:
    """GitHub's simple organization, as webhooks carry it."""
    url = f"{world.api}/orgs/{one.login}"
    return {
        **identity(one.kind, one.id),
        "login": one.login,
        "url": url,
        **links(url, ORGANIZATION_LINKS),
        "avatar_url": f"{world.web}/_sandbox/avatar/{one.id}",
        "description": None,
    }


def app(world: World, one: App) -> Json:
    """A registered App."""
    page = f"{world.web}/apps/{one.slug}"
    return {
        **identity("App", one.id),
        "slug": one.slug,
        "client_id": one.client_id,
        "owner": account(world, one.owner),
        "name": one.name,
        "description": "",
        "external_url": page,
        "html_url": page,
        **lifetime(one.created_at),
        "permissions": dict(one.permissions),
        "events": list(one.events),
        "installations_count": sum(i.app is one for i in world.installations.values()),
    }


def reporter(world: World, one: App) -> Json | None:
    """Return the App of a check run; None if GitHub does not show the App any more."""
    return None if one.is_gone else app(world, one)


def app_or_none(world: World, one: App | None) -> Json | None:
    """The same for an App that may be missing."""
    return None if one is None else app(world, one)


def installation(world: World, one: Installation) -> Json:
    """The App on one owner."""
    return {
        "id": one.id,
        "account": account(world, one.account),
        "repository_selection": "all" if one.selected is None else "selected",
        "access_tokens_url": f"{world.api}/app/installations/{one.id}/access_tokens",
        "repositories_url": f"{world.api}/installation/repositories",
        "html_url": f"{world.web}/settings/installations/{one.id}",
        "app_id": one.app.id,
        "app_slug": one.app.slug,
        "client_id": one.app.client_id,
        "target_id": one.account.id,
        "target_type": one.account.kind.value,
        "permissions": dict(one.permissions),
        "events": list(one.app.events),
        **lifetime(one.created_at, one.suspended_at),
        "single_file_name": None,
        "suspended_by": account(world, one.account) if one.suspended_at else None,
        "suspended_at": when(one.suspended_at),
    }


def repository_name(one: Repository) -> Json:
    """A repository as installation webhooks name it."""
    return {
        **identity("Repository", one.id),
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
    }


def owner_is_organization(one: Repository) -> bool:
    """Return whether webhooks of this repository carry an organization."""
    return one.owner.kind is Kind.ORGANIZATION
