"""`submit`, `cancel`, `restart`, `status`, `explain`, `land`: one pull request in its queue."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated

import typer
from pydantic import JsonValue

from bot.cli import options, output, place
from bot.cli.client import Json, Refusal
from bot.cli.exits import Exit, Failed
from bot.cli.output import Watch
from bot.cli.place import Opened, Place

app = typer.Typer()

OUTCOMES = {"MERGED": "merged", "FAILED": "failed", "CANCELLED": "removed"}

# UX.md 5: every 2 s, growing to 30 s.
POLL_FIRST_S = 2.0
POLL_MAX_S = 30.0
POLL_GROWTH = 1.3

# What a submission answers when there is nothing left to submit.
OVER = frozenset({"pull_request_merged", "pull_request_closed"})

Priority = Annotated[
    str | None, typer.Option("--priority", help="urgent, high, medium, low, lowest or 0 to 255.")
]
HeadSha = Annotated[
    str | None, typer.Option("--sha", help="The head that is meant; another one is refused.")
]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait: 90s, 5m, 2h.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has left the queue.")]


@dataclass(frozen=True, slots=True)
class Wish:
    """One pull request, and how it shall be submitted; None: not given."""

    number: int
    priority: str | None = None
    no_batch: bool | None = None
    sha: str | None = None


@app.command()
def submit(
    number: options.Number,
    priority: Priority = None,
    no_batch: Annotated[
        bool | None, typer.Option("--no-batch/--batch", help="Test it alone.")
    ] = None,
    sha: HeadSha = None,
    wait: Wait = False,
    timeout: Timeout = "2h",
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Put a pull request into the queue, or change its options there."""
    where = place.find(url, token_file, repo, branch)
    wish = Wish(number, priority, no_batch, sha)
    timeout_s = options.seconds(timeout)

    async def act() -> Json:
        async with where.opened() as opened:
            record = await submitted(opened, wish)
            return await until_final(opened, record, timeout_s) if wait else record

    shown(where, interruptible(number, act), as_json=as_json, decides=wait)


@app.command()
def cancel(
    number: options.Number,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for the record.")] = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Take a pull request out of the queue."""
    where = place.find(url, token_file, repo, branch)

    async def act() -> Json:
        async with where.opened() as opened:
            return await opened.post_about("/cancelPullRequest", number, reason=reason)

    shown(where, asyncio.run(act()), as_json=as_json)


@app.command()
def restart(
    number: options.Number,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Begin its tests anew on a new test branch."""
    where = place.find(url, token_file, repo, branch)

    async def act() -> Json:
        async with where.opened() as opened:
            return await opened.post_about("/restartTestsOnPullRequest", number)

    shown(where, asyncio.run(act()), as_json=as_json)


@app.command()
def status(
    number: options.Number,
    wait: Wait = False,
    timeout: Timeout = "2h",
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Show where a pull request stands."""
    where = place.find(url, token_file, repo, branch)
    timeout_s = options.seconds(timeout)

    async def act() -> Json:
        async with where.opened() as opened:
            record = await opened.post_about("/getSubmittedPullRequest", number)
            return await until_final(opened, record, timeout_s) if wait else record

    shown(where, interruptible(number, act), as_json=as_json, decides=wait)


@app.command()
def explain(
    number: options.Number,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Say why a pull request is not merged yet."""
    where = place.find(url, token_file, repo, branch)

    async def act() -> Json:
        async with where.opened() as opened:
            return await opened.post_about("/explainPullRequest", number)

    answer = asyncio.run(act())
    if as_json:
        output.json_value(answer)
    else:
        output.explanation(answer)


@app.command()
def land(
    number: options.Number,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until it has left the queue.")
    ] = True,
    priority: Priority = None,
    sha: HeadSha = None,
    timeout: Timeout = "2h",
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Submit a pull request if needed and wait to the end; for scripts and agents."""
    where = place.find(url, token_file, repo, branch)
    wish = Wish(number, priority, sha=sha)
    timeout_s = options.seconds(timeout) if wait else 0.0

    async def act() -> Json:
        async with where.opened() as opened:
            return await landed(opened, wish, timeout_s)

    record = interruptible(number, act)
    outcome = record["outcome"]
    if as_json:
        output.json_value(record)
    else:
        output.pull_request(record, where.repo.slug)
    if outcome in ("failed", "removed"):
        raise typer.Exit(Exit.FALSE)
    if outcome == "timeout" and wait:
        raise still_queued(record)


async def landed(opened: Opened, wish: Wish, timeout_s: float) -> Json:
    """The record at the end, with `outcome` and `explanation`; joins what is queued already.

    `timeout_s` 0: one submission, no wait. `outcome` is merged, failed, removed, or timeout
    while it is still queued.
    """
    try:
        record = await submitted(opened, wish)
    except Refusal as refusal:
        if refusal.code_of_problem not in OVER:
            raise
        record = await merged_before(opened, wish.number, refusal)
    if timeout_s:
        record = await waited(opened, record, timeout_s)
    explanation = await opened.post_about("/explainPullRequest", wish.number)
    outcome = OUTCOMES.get(output.state_of(record), "timeout")
    return {**record, "outcome": outcome, "explanation": explanation}


async def merged_before(opened: Opened, number: int, refusal: Refusal) -> Json:
    """The record of a pull request that the queue has merged; else the refusal stands."""
    try:
        record = await opened.post_about("/getSubmittedPullRequest", number)
    except Refusal:
        raise refusal from None
    if output.state_of(record) != "MERGED":
        raise refusal
    return record


async def submitted(opened: Opened, wish: Wish) -> Json:
    """The record after `/submitPullRequest`; a second call joins the first."""
    pr: dict[str, JsonValue] = {} if wish.sha is None else {"sha": wish.sha}
    return await opened.post_about(
        "/submitPullRequest", wish.number, pr=pr, priority=wish.priority, noBatch=wish.no_batch
    )


async def until_final(opened: Opened, record: Json, timeout_s: float) -> Json:
    """The record in its final state. Raises Failed(TIMEOUT) when it is still queued then."""
    record = await waited(opened, record, timeout_s)
    if output.state_of(record) not in OUTCOMES:
        raise still_queued(record)
    return record


def still_queued(record: Json) -> Failed:
    """What ends a command whose wait was shorter than the queue."""
    number = record["prNumber"]
    return Failed(
        Exit.TIMEOUT,
        f"the wait is over and #{number} is still queued ({output.standing(record).rstrip('.')})",
        f"It stays in the queue; wait on with `headgate status {number} --wait`",
    )


async def waited(opened: Opened, record: Json, timeout_s: float) -> Json:
    """The newest record once it is final or the time is over."""
    clock = opened.client.clock
    ends = clock.monotonic_s() + timeout_s
    pause_s = POLL_FIRST_S
    number = int(str(record["prNumber"]))
    with Watch() as watch:
        watch.show(record)
        while output.state_of(record) not in OUTCOMES and clock.monotonic_s() < ends:
            await clock.sleep(min(pause_s, max(ends - clock.monotonic_s(), 0.0)))
            pause_s = min(pause_s * POLL_GROWTH, POLL_MAX_S)
            record = await opened.post_about("/getSubmittedPullRequest", number)
            watch.show(record)
    return record


def interruptible(number: int, act: Callable[[], Coroutine[None, None, Json]]) -> Json:
    """What `act` answers; Ctrl-C ends the waiting, never the submission, and says so."""
    try:
        return asyncio.run(act())
    except KeyboardInterrupt:
        raise Failed(
            Exit.INTERRUPTED,
            f"interrupted; #{number} keeps its place in the queue",
            f"`headgate cancel {number}` takes it out",
        ) from None


def shown(where: Place, record: Json, *, as_json: bool, decides: bool = False) -> None:
    """Print a record; when it `decides`, a pull request that was not merged ends with 1."""
    if as_json:
        output.json_value(record)
    else:
        output.pull_request(record, where.repo.slug)
    if decides and output.state_of(record) != "MERGED":
        raise typer.Exit(Exit.FALSE)
