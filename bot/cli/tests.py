"""`tests …`: flaky and broken tests, and their quarantine."""

import typing
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

import typer

from bot.cli import options, output
from bot.cli.destination import Repository
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer(help="List flaky and broken tests, and quarantine them.")

# As many tests as one request may return.
PAGE = 100

WEEK = timedelta(days=7)

# Characters of a test's name that a list shows; the page of the test has all.
NAME_MAX = 120


def _parse_test_id(text: str) -> str:
    """Return the id of a test that is named by its id or by its link.

    The link is `urn:uuid:…` where the service does not know its public address.
    """
    return urlsplit(text).path.rstrip("/").rpartition("/")[2].removeprefix("uuid:")


TestId = Annotated[
    str,
    typer.Argument(
        help="The test's link, as `tests list` shows it, or its id.", parser=_parse_test_id
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the log and for people.")]


class Kind(StrEnum):
    """The kinds of tests to list."""

    FLAKY = "flaky"
    BROKEN = "broken"
    QUARANTINED = "quarantined"
    FAILING = "failing"
    ALL = "all"


class Order(StrEnum):
    """The orders of a list of tests."""

    PRS_HIT = "prs-hit"
    CI_TIME = "ci-time"


HEADINGS = (
    *("Test", "Status", "Fails (7 d)", "Last failure", "PRs hit", "CI lost (7 d)"),
    *("Owner", "Quarantined"),
)
ORDERS = {Order.PRS_HIT: "PULL_REQUESTS", Order.CI_TIME: "CI_TIME"}


@options.repository_command(app, "list")
def list_all(
    repository: Repository,
    which: Annotated[
        Kind, typer.Argument(help="Which tests; failing: those that failed in 7 days.")
    ] = Kind.FLAKY,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only tests of this code owner, or of none.")
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", help="Part of the name, file, class or suite.")
    ] = None,
    sort: Annotated[
        Order | None,
        typer.Option("--sort", help="First those that hit most PRs (default), or lost most CI."),
    ] = None,
) -> Result:
    """List tests, those first that hit most pull requests; the link leads to a test's page."""
    order = None if sort is None else ORDERS[sort]
    filters = {"owner": owner, "search": search, "order_by": order}
    given: Json = {name: value for name, value in filters.items() if value is not None}
    if which in (Kind.FAILING, Kind.QUARANTINED) and given:
        raise Failed(
            Exit.USAGE,
            f"`tests list {which.value}` has no --owner, --search and --sort",
            "Use them with flaky, broken or all",
        )
    headings: tuple[str, ...] = HEADINGS
    row_of = _listed_row
    if which is Kind.QUARANTINED:
        tests = _all_pages(repository, "/list-quarantined-tests", "quarantined_tests", {})
        row_of, headings = _quarantined_row, ("Test", "By", "Until", "Because")
    elif which is Kind.FAILING:
        tests = _all_pages(repository, "/list-failing-tests", "tests", _last_week(repository))
        row_of, headings = _failing_row, ("Test", "Fails (7 d)", "PRs hit", "Owner", "Failure")
    else:
        status: Json = {} if which is Kind.ALL else {"status": which.value}
        tests = _all_pages(repository, "/list-tests", "tests", status | given)

    def show() -> None:
        if tests:
            output.print_linked((*headings, "Link"), map(row_of, tests))
        else:
            output.line(f"No {'' if which is Kind.ALL else which.value + ' '}test.")

    return Result(tests, show)


@options.repository_command(app)
def show(repository: Repository, test_id: TestId) -> Result:
    """Show one test: its health and why, how often and how it fails, its quarantine."""
    answer = repository.post("/get-test-details", {"test_id": test_id})

    def show() -> None:
        for test in output.objects([answer["test"]]):
            output.print_facts(facts_of(test))

    return Result(answer, show)


@options.repository_command(app)
def quarantine(
    repository: Repository,
    test_id: TestId,
    reason: Reason,
    until: Annotated[
        str | None,
        typer.Option("--until", help="A time with an offset, within 366 days. Default: 30 days."),
    ] = None,
) -> Result:
    """Count failures of a test as passed for some time, once quarantining is on."""
    override: Json = {"override": "ALWAYS_QUARANTINE", "reason": reason}
    if until is not None:
        override["expires_at"] = until
    answer = set_override(repository, test_id, override)

    def show() -> None:
        output.line(f"Quarantined {test_id} until {output.moment(answer['expires_at'])}")
        if not answer["quarantined"]:
            output.log("No effect yet: quarantine is off for this repository. Turn it on:")
            output.log(
                "headgate tests settings --set quarantine_enabled=true "
                f"--repo {repository.repo.host}/{repository.repo.slug}"
            )

    return Result(answer, show)


@options.repository_command(app)
def release(repository: Repository, test_id: TestId) -> Result:
    """Remove a test's quarantine override."""
    answer = set_override(repository, test_id, {"override": "UNSPECIFIED"})

    def show() -> None:
        output.line(f"Released {test_id}")
        if answer["quarantined"]:
            output.log("Still quarantined because of its status, by the repository's settings")

    return Result(answer, show)


@options.repository_command(app)
def settings(repository: Repository, changes: options.Set = None) -> Result:
    """Show the settings of a repository's tests; --set changes them, all or none."""
    if changes:
        answer = repository.post("/update-settings", parse_settings(changes))
    else:
        answer = repository.post("/get-settings", {})

    def show() -> None:
        from bot.cli import queue_settings

        pairs = [(name, queue_settings.written(value)) for name, value in answer.items()]
        output.print_table(("Setting", "Value"), pairs)

    return Result(answer, show)


@options.repository_command(app, "delete-upload")
def delete_upload(
    repository: Repository,
    upload_id: Annotated[str, typer.Argument(help="The upload's id, from its answer.")],
) -> Result:
    """Delete an upload with wrong results; its tests are evaluated without it."""
    answer = repository.post("/delete-upload", {"upload_id": upload_id})
    return Result(answer, lambda: output.line(f"Deleted {answer['upload_id']}"))


def set_override(repository: Repository, test_id: str, override: Json) -> Json:
    """Set or remove a quarantine override, and return the answer."""
    return repository.post("/set-quarantine-override", {"test_id": test_id, **override})


def _all_pages(repository: Repository, path: str, field: str, members: Json) -> list[Json]:
    """Return every row of a list, page after page."""
    rows: list[Json] = []
    token: object = ""
    while True:
        query: Json = {"page_size": PAGE, "page_token": token}
        answer = repository.post(path, {**members, "page_query": query})
        rows += output.objects(answer[field])
        page = answer["page"]
        token = page["next_page_token"] if isinstance(page, dict) else ""
        if not token:
            return rows


def parse_settings(texts: Sequence[str]) -> Json:
    """Return `KEY=VALUE` texts as members of a request. Raises as `queue_settings.parse_pairs`."""
    from bot.cli import queue_settings
    from service.testhealth.settings import TestSettings

    kinds = typing.get_type_hints(TestSettings)
    known = {name: (name, kind) for name, kind in kinds.items()}
    return queue_settings.parse_pairs(texts, known, "test", "headgate tests settings")


def _last_week(repository: Repository) -> Json:
    """Return the last seven days, as requests name a range of time."""
    now = datetime.fromtimestamp(repository.client.clock.unix_s(), UTC)
    return {"start_time": (now - WEEK).isoformat(), "end_time": now.isoformat()}


def _listed_row(test: Json) -> tuple[str, ...]:
    """Return a test as a row of the table."""
    status = test["status"]
    return (
        short_name_of(test, "file_path"),
        str(status["value"]) if isinstance(status, dict) else "",
        percent(test["failure_rate_last_7d"]),
        output.moment_or(test["last_failed_at"], "never"),
        str(test["pull_requests_impacted_last_7d"]),
        hours(test["ci_seconds_lost_last_7d"]),
        output.joined(test["codeowners"]),
        "yes" if test["quarantined"] else "no",
        str(test["html_url"]),
    )


def _failing_row(test: Json) -> tuple[str, ...]:
    """Return a test that failed as a row of the table, with its most common failure."""
    failures = output.objects(test["most_common_failures"])
    return (
        short_name_of(test, "file_path"),
        percent(test["failure_rate_last_7d"]),
        str(test["pull_requests_impacted_last_7d"]),
        output.joined(test["codeowners"]),
        str(failures[0]["summary"]) if failures else "",
        str(test["html_url"]),
    )


def _quarantined_row(test: Json) -> tuple[str, ...]:
    """Return a quarantined test as a row of the table."""
    return (
        short_name_of(test, "file"),
        str(test["quarantine_setting"]),
        output.moment_or(test["expires_at"], "it is healthy"),
        str(test["reason"]),
        str(test["html_url"]),
    )


def facts_of(test: Json) -> list[tuple[str, object]]:
    """Return a test as pairs of a name and a value."""
    status, ticket = test["status"], test.get("ticket")
    failures = output.objects(test["most_common_failures"])
    health = status if isinstance(status, dict) else {}
    facts: list[tuple[str, object]] = [
        ("Test", name_of(test, "file_path")),
        ("Status", f"{health.get('value')} since {output.moment(health.get('timestamp'))}"),
        ("Because", health.get("reason")),
        ("Fails", f"{percent(test['failure_rate_last_7d'])} in 7 days, "
                  f"{percent(test['failure_rate_last_24h'])} in 24 hours"),
        ("PRs hit", test["pull_requests_impacted_last_7d"]),
        ("CI lost", f"{hours(test['ci_seconds_lost_last_7d'])} in 7 days"),
        ("Quarantined", "yes" if test["quarantined"] else "no"),
        ("Override", override_of(test)),
        ("Owners", output.joined(test["codeowners"])),
        ("Ticket", ticket["html_url"] if isinstance(ticket, dict) else None),
        ("Last run", output.moment_or(test["last_run_at"], "never")),
        ("Last failure", output.moment_or(test["last_failed_at"], "never")),
        ("Link", test["html_url"]),
    ]  # fmt: skip
    facts.extend(
        ("Failed", f"{times(each['occurrence_count'])}: {each['summary']}") for each in failures
    )
    return facts


def times(count: object) -> str:
    """Return `1 time`, `3 times`."""
    return f"{count} time{'' if count == 1 else 's'}"


def override_of(test: Json) -> str | None:
    """Return the quarantine override and its end; None without one."""
    override, until = test["quarantine_override"], test["quarantine_expires_at"]
    if override == "UNSPECIFIED":
        return None
    return f"{override} until {output.moment(until)}" if until else str(override)


def name_of(test: Json, file: str) -> str:
    """Return `file::name (variant)`."""
    parts = [str(each) for each in (test.get(file), test["name"]) if each]
    variant = f" ({test['variant']})" if test["variant"] else ""
    return "::".join(parts) + variant


def short_name_of(test: Json, file: str) -> str:
    """Return `file::name (variant)` for a list, in which one long name would widen every row."""
    name = name_of(test, file)
    return name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"


def percent(rate: object) -> str:
    """Return `14.5 %` for a share."""
    return f"{float(str(rate)) * 100:.3g} %"


def hours(seconds: object) -> str:
    """Return `1:05 h` for a number of seconds."""
    minutes = int(str(seconds)) // 60
    return f"{minutes // 60}:{minutes % 60:02} h"
