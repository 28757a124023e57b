"""`token …`: API tokens, created and revoked beside a running service.

These commands open the database for one short transaction each: everyone who can read it may
create tokens, and the first token must come from somewhere.
"""

import re
from typing import Annotated

import typer

from bot.cli import destination, options, output
from bot.cli.exits import Exit, Failed
from service.accounts.tenants import IssuedToken, TokenView
from service.errors import NotFound
from service.vocabulary import RepoRef, Role

app = typer.Typer(help="Create, list, rotate and revoke API tokens.")

# A successor's overlap where the option is not given, as in the API.
OVERLAP_HOURS = 24
EXPIRES_IN_DAYS_MAX = 366
# As many characters as the API takes.
ORG = re.compile(r"[A-Za-z0-9_.-]{1,100}")

Org = Annotated[str, typer.Option("--org", help="The organization's slug.")]
Host = Annotated[
    str | None,
    typer.Option("--host", help="Host of the organization. Default: HEADGATE_GITHUB_HOST."),
]
OpenEntries = Annotated[
    int,
    typer.Option(
        "--open-entries", min=0, max=5000, help="Most PRs in all queues at a time; 0: no limit."
    ),
]
CiMinutes = Annotated[
    int,
    typer.Option(
        "--ci-minutes", min=0, max=1_000_000, help="Most CI minutes a day (UTC); 0: no limit."
    ),
]
TokenId = Annotated[str, typer.Argument(help="The ten characters after hgt_.")]


@app.command()
def create(
    org: Org,
    role: Annotated[Role, typer.Option("--role", help="What it allows.", case_sensitive=False)],
    name: Annotated[str, typer.Option("--name", help="Name of the token, 1 to 100 characters.")],
    repositories: Annotated[
        list[str] | None, typer.Option("--repo", help="Only for OWNER/NAME; repeatable.")
    ] = None,
    expires: Annotated[str, typer.Option("--expires", help="Days, 1 to 366, or never.")] = "90",
    open_entries: OpenEntries = 0,
    ci_minutes: CiMinutes = 0,
    host: Host = None,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Create a token; it is printed once, alone on stdout."""
    days = _parse_expiry(expires)
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise Failed(Exit.USAGE, "--name must be 1 to 100 printable characters")
    if ORG.fullmatch(org) is None:
        raise Failed(Exit.USAGE, f"--org {org!r} is not the name of an organization or a person")
    named = [destination.required_repository(slug) for slug in repositories or ()]
    from bot.cli.administration import administer, operator
    from service.accounts import tokens
    from service.runtime import Runtime

    def request(at: str) -> tokens.TokenRequest:
        limited = tuple(RepoRef(at, ref.owner, ref.name) for ref in named) or None
        return tokens.TokenRequest(at, org, name, role, limited, days, open_entries, ci_minutes)

    async def act(runtime: Runtime, main: str) -> tuple[bool, IssuedToken]:
        wanted = request(host or main)
        try:
            await tokens.list_tokens(runtime, wanted.host, org)
            is_known = True
        except NotFound:
            is_known = False
        return is_known, await tokens.create_token(runtime, wanted, operator())

    is_known, issued = administer(act, database_url, data_dir)
    view = issued.view
    if not is_known:
        output.log(
            f"{view.org_slug} on {view.host} is a new organization here: the token sees nothing "
            "until the App is installed there. Is the name right?"
        )
    output.log(
        f"{view.role.value} token {view.id} for {view.org_slug}, {end_of(view)}. "
        "It is shown only once."
    )
    _print_secret(issued, as_json=as_json)


@app.command(name="list")
def list_all(
    org: Org,
    host: Host = None,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """List an organization's tokens, oldest first; never their secrets."""
    from bot.cli.administration import administer
    from service.accounts import tokens

    views = administer(
        lambda runtime, main: tokens.list_tokens(runtime, host or main, org),
        database_url,
        data_dir,
    )
    if as_json:
        output.print_json({"tokens": [record_of(view) for view in views]})
        return
    output.print_table(
        ("Id", "Name", "Role", "Repositories", "Limits", "Created", "Ends", "Last used"),
        [
            (
                view.id,
                view.name,
                view.role.value,
                "all" if (slugs := _slugs_of(view)) is None else ", ".join(slugs),
                _limits_of(view),
                f"{view.created_at:%Y-%m-%d}",
                f"revoked {view.revoked_at:%Y-%m-%d}" if view.revoked_at else end_of(view),
                f"{view.last_used_at:%Y-%m-%d %H:%M}" if view.last_used_at else "never",
            )
            for view in views
        ],
    )


@app.command()
def rotate(
    token_id: TokenId,
    overlap_hours: Annotated[
        int,
        typer.Option(
            "--overlap-hours", min=0, max=24, help="Hours for which the old token stays valid."
        ),
    ] = OVERLAP_HOURS,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Create a successor with equal rights; it is printed once, alone on stdout."""
    from bot.cli.administration import administer, operator
    from service.accounts import tokens

    issued = administer(
        lambda runtime, _: tokens.rotate_token(runtime, token_id, overlap_hours, operator()),
        database_url,
        data_dir,
    )
    output.log(f"{issued.view.id} replaces {token_id}, which stays valid for {overlap_hours} h.")
    _print_secret(issued, as_json=as_json)


@app.command()
def revoke(
    token_id: TokenId,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Revoke a token from the next request on; a second time changes nothing."""
    from bot.cli.administration import administer, operator
    from service.accounts import tokens

    view = administer(
        lambda runtime, _: tokens.revoke_token(runtime, token_id, operator()),
        database_url,
        data_dir,
    )
    if as_json:
        output.print_json(record_of(view))
    else:
        output.line(f"Revoked {view.id} ({view.name})")


def _print_secret(issued: IssuedToken, *, as_json: bool) -> None:
    """Print a new token alone, or with its record."""
    if as_json:
        output.print_json(record_of(issued.view) | {"token": issued.secret})
    else:
        output.line(issued.secret)


def _parse_expiry(text: str) -> int | None:
    """Return the days, None for `never`. Raises Failed(USAGE)."""
    if text == "never":
        return None
    if not text.isdigit() or not 1 <= int(text) <= EXPIRES_IN_DAYS_MAX:
        raise Failed(
            Exit.USAGE, f"--expires {text!r} is neither never nor 1 to {EXPIRES_IN_DAYS_MAX} days"
        )
    return int(text)


def end_of(view: TokenView) -> str:
    """Return when a token ends, in words."""
    return "never expires" if view.expires_at is None else f"until {view.expires_at:%Y-%m-%d}"


def _limits_of(view: TokenView) -> str:
    entries = f"{view.open_entries} PRs" if view.open_entries else ""
    minutes = f"{view.ci_minutes} min a day" if view.ci_minutes else ""
    return ", ".join(filter(None, (entries, minutes))) or "none"


def _slugs_of(view: TokenView) -> list[str] | None:
    """Return the repositories that a token is limited to, None: all of the organization."""
    return None if view.repositories is None else [ref.slug for ref in view.repositories]


def record_of(view: TokenView) -> dict[str, object]:
    """Return a token as the API shows it."""
    return {
        "id": view.id,
        "name": view.name,
        "role": view.role.value,
        "organization": {"slug": view.org_slug, "host": view.host},
        "repositories": _slugs_of(view),
        "created_at": view.created_at,
        "expires_at": view.expires_at,
        "last_used_at": view.last_used_at,
        "revoked_at": view.revoked_at,
        "open_entries": view.open_entries,
        "ci_minutes": view.ci_minutes,
    }
