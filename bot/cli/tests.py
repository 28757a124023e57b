"""`tests …`: which tests are flaky or broken, and what their failures count for."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Annotated, TypeVar

import typer
from pydantic import JsonValue

from bot.cli import client, options, output, place
from bot.cli.client import Client, Json
from service.clock import SystemClock
from service.vocabulary import RepoRef

app = typer.Typer(help="Look at tests, and at what their failures count for.")

PAGE = 100
"""Tests asked for at once, as many as the service gives."""

Answered = TypeVar("Answered")

TestId = Annotated[str, typer.Argument(help="The test's id, as `tests list` shows it.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the log and for people.")]


class Shown(StrEnum):
    """Which list."""

    FLAKY = "flaky"
    BROKEN = "broken"
    QUARANTINED = "quarantined"


@app.command(name="list")
def list_all(
    which: Annotated[Shown, typer.Argument(help="Which tests.")] = Shown.FLAKY,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List flaky, broken or quarantined tests, all pages of them."""

    async def act(connection: Client, about: Json) -> list[Json]:
        if which is Shown.QUARANTINED:
            name, field = "list-quarantined-tests", "quarantined_tests"
        else:
            name, field = "list-unhealthy-tests", "tests"
            about = {**about, "status": which.value}
        return await pages(connection, f"/flaky-tests/{name}", field, about)

    found = asked(url, token_file, repo, act)
    if as_json:
        output.json_value(found)
    elif which is Shown.QUARANTINED:
        rows = [quarantined_row(each) for each in found]
        output.table(("Id", "Test", "By", "Until", "Because"), rows)
    else:
        rows = [unhealthy_row(each) for each in found]
        output.table(("Id", "Test", "PRs hit", "Owners", "Quarantined", "Because"), rows)


@app.command()
def show(
    test_id: TestId,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one test: its health and why, how often and how it fails, its quarantine."""

    async def act(connection: Client, about: Json) -> Json:
        body = {**about, "test_id": test_id}
        return await connection.post("/flaky-tests/get-test-details", body)

    answer = asked(url, token_file, repo, act)
    if as_json:
        output.json_value(answer)
        return
    test = answer["test"]
    if isinstance(test, dict):
        output.facts(facts_of(test))


@app.command()
def quarantine(
    test_id: TestId,
    reason: Reason,
    until: Annotated[
        str | None,
        typer.Option("--until", help="A time with an offset, within 366 days. Default: 30 days."),
    ] = None,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Let failures of a test count as passed for some time, once quarantining is on."""
    said: Json = {"override": "ALWAYS_QUARANTINE", "reason": reason}
    if until is not None:
        said["expires_at"] = until
    answer = override((url, token_file, repo), test_id, said)
    if as_json:
        output.json_value(answer)
        return
    output.line(f"Quarantined {test_id} until {answer['expires_at']}")
    if not answer["quarantined"]:
        output.told("Without effect yet: set `quarantine_enabled` by /flaky-tests/update-settings")


@app.command()
def release(
    test_id: TestId,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take back what was said of a test's quarantine."""
    answer = override((url, token_file, repo), test_id, {"override": "UNSPECIFIED"})
    if as_json:
        output.json_value(answer)
        return
    output.line(f"Released {test_id}")
    if answer["quarantined"]:
        output.told("Still quarantined by its status, as the repository's settings say")


@app.command(name="delete-upload")
def delete_upload(
    upload_id: Annotated[str, typer.Argument(help="The upload's id, as its answer has it.")],
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Forget an upload whose results were wrong; its tests are judged without it."""

    async def act(connection: Client, about: Json) -> Json:
        body = {**about, "upload_id": upload_id}
        return await connection.post("/flaky-tests/delete-upload", body)

    answer = asked(url, token_file, repo, act)
    if as_json:
        output.json_value(answer)
        return
    output.line(f"Deleted {answer['upload_id']}")


Where = tuple[str | None, options.TokenFile, str | None]
"""What the options say of service, token and repository."""


def override(where: Where, test_id: str, said: Json) -> Json:
    """Say something of a test's quarantine; what the service answers."""

    async def act(connection: Client, about: Json) -> Json:
        body = {**about, "test_id": test_id, **said}
        return await connection.post("/flaky-tests/set-quarantine-override", body)

    return asked(*where, act)


def asked(
    url: str | None,
    token_file: options.TokenFile,
    repo: str | None,
    act: Callable[[Client, Json], Coroutine[None, None, Answered]],
) -> Answered:
    """What comes of asking about the tests of a repository.

    Raises Refusal, Failed(USAGE, UNREACHABLE).
    """
    where, token = place.find_url(url), place.find_token(token_file)
    ref = place.find_repository(repo)

    async def ask() -> Answered:
        async with client.connected(where, token, SystemClock(), output.told) as connection:
            return await act(connection, await about(connection, ref))

    return asyncio.run(ask())


async def about(connection: Client, repo: RepoRef) -> Json:
    """The members of every request about tests; the organization is the token's own."""
    own = (await connection.get("/tokens/self"))["organization"]
    slug = own["slug"] if isinstance(own, dict) else ""
    return {"repo": place.named(repo), "org_url_slug": slug}


async def pages(connection: Client, path: str, field: str, about: Json) -> list[Json]:
    """Every row of a list, page by page."""
    found: list[Json] = []
    token: JsonValue = ""
    while True:
        query: Json = {"page_size": PAGE, "page_token": token}
        answer = await connection.post(path, {**about, "page_query": query})
        rows, page = answer[field], answer["page"]
        found += [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []
        token = page["next_page_token"] if isinstance(page, dict) else ""
        if not token:
            return found


def unhealthy_row(test: Json) -> tuple[str, ...]:
    """A test as a row of the table."""
    status = test["status"]
    return (
        str(test["id"]),
        name_of(test, "file_path"),
        str(test["pull_requests_impacted_last_7d"]),
        owners_of(test),
        "yes" if test["quarantined"] else "no",
        str(status["reason"]) if isinstance(status, dict) else "",
    )


def quarantined_row(test: Json) -> tuple[str, ...]:
    """A quarantined test as a row of the table."""
    return (
        str(test["test_case_id"]),
        name_of(test, "file"),
        str(test["quarantine_setting"]),
        str(test["expires_at"] or "it heals"),
        str(test["reason"]),
    )


def facts_of(test: Json) -> list[tuple[str, object]]:
    """A test as lines of a name and a value."""
    status, ticket = test["status"], test.get("ticket")
    failures = test["most_common_failures"]
    told = status if isinstance(status, dict) else {}
    ways = failures if isinstance(failures, list) else []
    shown: list[tuple[str, object]] = [
        ("Test", name_of(test, "file_path")),
        ("Status", f"{told.get('value')} since {told.get('timestamp')}"),
        ("Because", told.get("reason")),
        ("Fails", f"{percent(test['failure_rate_last_7d'])} in 7 days, "
                  f"{percent(test['failure_rate_last_24h'])} in 24 hours"),
        ("PRs hit", test["pull_requests_impacted_last_7d"]),
        ("Quarantined", "yes" if test["quarantined"] else "no"),
        ("Override", override_of(test)),
        ("Owners", owners_of(test)),
        ("Ticket", ticket["html_url"] if isinstance(ticket, dict) else None),
        ("Last run", test["last_run_at"]),
    ]  # fmt: skip
    shown.extend(
        ("Failed", f"{way['occurrence_count']} times: {way['summary']}")
        for way in ways
        if isinstance(way, dict)
    )
    return shown


def override_of(test: Json) -> str | None:
    """What somebody said of its quarantine, and until when."""
    said, until = test["quarantine_override"], test["quarantine_expires_at"]
    if said == "UNSPECIFIED":
        return None
    return f"{said} until {until}" if until else str(said)


def name_of(test: Json, file: str) -> str:
    """`file::name (variant)`."""
    parts = [str(each) for each in (test.get(file), test["name"]) if each]
    variant = f" ({test['variant']})" if test["variant"] else ""
    return "::".join(parts) + variant


def owners_of(test: Json) -> str:
    """`@octo/web, @bob`."""
    owners = test["codeowners"]
    return ", ".join(map(str, owners)) if isinstance(owners, list) else ""


def percent(rate: JsonValue) -> str:
    """`14.5 %` of a share."""
    return f"{float(str(rate)) * 100:.3g} %"
