"""`token …`: API tokens, made and ended beside a running service.

These commands open the database for one short transaction each: whoever can read it may make
tokens, and the first token must come from somewhere.
"""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from bot import settings, wiring
from bot.cli import output, place
from bot.cli.exits import Exit, Failed, sentence
from service.accounts import tokens
from service.accounts.token_views import IssuedToken, TokenView
from service.accounts.tokens import TokenWish
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, RepoRef, Role

app = typer.Typer(help="Make, list, rotate and revoke API tokens.")

T = TypeVar("T")

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", help="Default: HEADGATE_DATABASE_URL.")
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Default: HEADGATE_DATA_DIR.")]
Org = Annotated[str, typer.Option("--org", help="The organization's slug.")]
Host = Annotated[
    str | None, typer.Option("--host", help="Its host. Default: HEADGATE_GITHUB_HOST.")
]
TokenId = Annotated[str, typer.Argument(help="The ten characters after hgt_.")]


@app.command()
def create(
    org: Org,
    role: Annotated[Role, typer.Option("--role", help="What it allows.", case_sensitive=False)],
    name: Annotated[str, typer.Option("--name", help="Who uses it, 1 to 100 characters.")],
    repositories: Annotated[
        list[str] | None, typer.Option("--repo", help="OWNER/NAME it is limited to; repeatable.")
    ] = None,
    expires: Annotated[str, typer.Option("--expires", help="Days, 1 to 366, or never.")] = "90",
    host: Host = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Make a token; it is printed once, alone on stdout."""
    days = parse_expiry(expires)
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise Failed(Exit.USAGE, "--name must be 1 to 100 printable characters")

    async def act(runtime: Runtime, at_host: str) -> IssuedToken:
        limited = None
        if repositories:
            limited = tuple(in_host(parse_slug(slug), host or at_host) for slug in repositories)
        wish = TokenWish(host or at_host, org, name, role, limited, days)
        return await tokens.create_token(runtime, wish, operator())

    issued = administered(act, database_url, data_dir)
    output.told(
        f"{issued.view.role.value} token {issued.view.id} for {issued.view.org_slug}, "
        f"{until(issued.view.expires_at)}. It is shown this once."
    )
    output.line(issued.secret)


@app.command(name="list")
def list_all(
    org: Org,
    host: Host = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> None:
    """List an organization's tokens, oldest first; never their secrets."""

    async def act(runtime: Runtime, at_host: str) -> tuple[TokenView, ...]:
        return await tokens.list_tokens(runtime, host or at_host, org)

    found = administered(act, database_url, data_dir)
    if as_json:
        output.json_value({"tokens": [record_of(view) for view in found]})
        return
    output.table(
        ("Id", "Name", "Role", "Repositories", "Created", "Ends", "Last used"),
        [
            (
                view.id,
                view.name,
                view.role.value,
                "all" if (slugs := slugs_of(view)) is None else ", ".join(slugs),
                f"{view.created_at:%Y-%m-%d}",
                f"revoked {view.revoked_at:%Y-%m-%d}"
                if view.revoked_at
                else until(view.expires_at),
                f"{view.last_used_at:%Y-%m-%d %H:%M}" if view.last_used_at else "never",
            )
            for view in found
        ],
    )


@app.command()
def rotate(
    token_id: TokenId,
    overlap_hours: Annotated[
        int, typer.Option("--overlap-hours", min=0, max=24, help="How long the old one works on.")
    ] = tokens.OVERLAP_HOURS,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Make a successor with equal rights; it is printed once, alone on stdout."""

    async def act(runtime: Runtime, _host: str) -> IssuedToken:
        return await tokens.rotate_token(runtime, token_id, overlap_hours, operator())

    issued = administered(act, database_url, data_dir)
    output.told(f"{issued.view.id} follows {token_id}, which works {overlap_hours} h more.")
    output.line(issued.secret)


@app.command()
def revoke(token_id: TokenId, database_url: DatabaseUrl = None, data_dir: DataDir = None) -> None:
    """End a token from the next request on; a second time changes nothing."""

    async def act(runtime: Runtime, _host: str) -> TokenView:
        return await tokens.revoke_token(runtime, token_id, operator())

    view = administered(act, database_url, data_dir)
    output.line(f"Revoked {view.id} ({view.name})")


def administered(
    act: Callable[[Runtime, str], Awaitable[T]], database_url: str | None, data_dir: Path | None
) -> T:
    """What `act` answers for the deployment's database and its main host."""
    chosen = settings.read(database_url=database_url, data_dir=data_dir)
    path = Path(chosen.database_address.removeprefix("sqlite:///"))
    is_new = chosen.is_sqlite and not path.exists()

    async def opened() -> T:
        async with wiring.open_administration(chosen) as runtime:
            if is_new:
                output.told(sentence(f"a new database was made at {path}"))
            return await act(runtime, chosen.github_host)

    return asyncio.run(opened())


def parse_expiry(text: str) -> int | None:
    """Days, or None for `never`. Raises Failed(USAGE)."""
    if text == "never":
        return None
    if not text.isdigit() or not 1 <= int(text) <= tokens.EXPIRES_IN_DAYS_MAX:
        raise Failed(
            Exit.USAGE,
            f"--expires {text!r} is neither never nor 1 to {tokens.EXPIRES_IN_DAYS_MAX} days",
        )
    return int(text)


def parse_slug(text: str) -> RepoRef:
    """`OWNER/NAME`. Raises Failed(USAGE)."""
    found = place.parse_repository(text)
    if found is None:
        raise Failed(Exit.USAGE, f"{text!r} names no repository", "Give --repo OWNER/NAME")
    return found


def in_host(ref: RepoRef, host: str) -> RepoRef:
    """The same owner and name at the organization's host."""
    return RepoRef(host, ref.owner, ref.name)


def operator() -> Actor:
    """Whoever works on this machine, as the audit log names them."""
    return Actor(ActorKind.PERSON, login=f"{getpass.getuser()} (command line)")


def until(expires_at: datetime | None) -> str:
    """When a token ends, in words."""
    return "never expires" if expires_at is None else f"until {expires_at:%Y-%m-%d}"


def slugs_of(view: TokenView) -> list[str] | None:
    """The repositories that a token is limited to, None: all of the organization."""
    return None if view.repositories is None else [ref.slug for ref in view.repositories]


def record_of(view: TokenView) -> dict[str, object]:
    """A token as the API shows it (API.md 9)."""
    return {
        "id": view.id,
        "name": view.name,
        "role": view.role.value,
        "organization": {"slug": view.org_slug, "host": view.host},
        "repositories": slugs_of(view),
        "created_at": view.created_at,
        "expires_at": view.expires_at,
        "last_used_at": view.last_used_at,
        "revoked_at": view.revoked_at,
    }
