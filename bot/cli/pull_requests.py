"""`submit`, `cancel`, `restart`, `status`, `explain`, `next`, `land`: one pull request."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

import typer

from bot.cli import options, output
from bot.cli.client import Refusal
from bot.cli.destination import Queue
from bot.cli.exits import STEP_EXITS, Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Clock, Json

app = typer.Typer()

PRIORITY_MAX = 255
PRIORITY_DIGITS_MAX = 10
OUTCOMES: dict[str, Literal["merged", "failed", "removed"]] = {
    "MERGED": "merged",
    "FAILED": "failed",
    "CANCELLED": "removed",
}

# How long the service may wait for a change before it answers, below the client's time limit.
WAIT_MAX_S = 25.0

# The codes of a refusal to submit what has been merged or closed.
OVER = frozenset({"pull_request_merged", "pull_request_closed"})

Priority = Annotated[
    str | None,
    typer.Option("--priority", "-p", help="urgent, high, medium, low, lowest or 0 to 255."),
]
HeadSha = Annotated[
    str | None,
    typer.Option(
        "--sha", help="Refuse if this is not the pull request's head; 7 characters are enough."
    ),
]
Undoes = Annotated[
    list[str] | None,
    typer.Option(
        "--undoes", help="Merged work that it takes back on purpose: #7, or a commit. Repeatable."
    ),
]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Test a head again that failed before; needs a token of role admin."
    ),
]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait: 90s, 5m, 2h.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has left the queue.")]
Watch = Annotated[
    bool, typer.Option("--watch", "--wait", help="Show each change until it has left the queue.")
]


COMMIT_CHARS_MIN = 10


class Submission(NamedTuple):
    """A pull request, and its options in the queue; None: not given."""

    number: int
    priority: str | None = None
    no_batch: bool | None = None
    sha: str | None = None
    undoes: Sequence[str] = ()
    again: bool = False


@options.queue_command(app)
def submit(
    queue: Queue,
    number: options.Number,
    priority: Priority = None,
    no_batch: Annotated[
        bool | None, typer.Option("--no-batch/--batch", help="Test it alone.")
    ] = None,
    sha: HeadSha = None,
    undoes: Undoes = None,
    again: Again = False,
    wait: Wait = False,
    timeout: Timeout = "2h",
) -> Result:
    """Submit a pull request to the queue, or change its options there."""
    timeout_s = options.seconds(timeout)
    with interruptible(number):
        submission = Submission(number, priority, no_batch, sha, undoes or (), again)
        record = _post_submission(queue, submission)
        if wait:
            record = _wait_until_final(queue, record, timeout_s)
    is_merged = output.state_of(record) == "MERGED"
    return shown(queue, record, typer.Exit(Exit.FALSE) if wait and not is_merged else None)


@options.queue_command(app)
def cancel(
    queue: Queue,
    number: options.Number,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for the record.")] = None,
) -> Result:
    """Remove a pull request from the queue."""
    return shown(queue, queue.post_pull_request("/cancelPullRequest", number, reason=reason))


@options.queue_command(app)
def restart(queue: Queue, number: options.Number) -> Result:
    """Restart its tests on a new test branch."""
    return shown(queue, queue.post_pull_request("/restartTestsOnPullRequest", number))


@options.queue_command(app)
def status(
    queue: Queue,
    number: options.Number,
    watch: Watch = False,
    timeout: Timeout = "2h",
) -> Result:
    """Show the state of a pull request in the queue."""
    timeout_s = options.seconds(timeout)
    with interruptible(number):
        record = queue.post_pull_request("/getSubmittedPullRequest", number)
        if watch:
            record = _wait_until_final(queue, record, timeout_s)
    is_merged = output.state_of(record) == "MERGED"
    return shown(queue, record, typer.Exit(Exit.FALSE) if watch and not is_merged else None)


@options.queue_command(app)
def explain(queue: Queue, number: options.Number) -> Result:
    """Explain why a pull request is not merged yet."""
    answer = queue.post_pull_request("/explainPullRequest", number)
    return Result(answer, lambda: output.print_explanation(answer))


@options.queue_command(app, "next")
def show_next_step(
    queue: Queue,
    number: options.Number,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until there is something to do.")
    ] = False,
    after: Annotated[
        str | None,
        typer.Option("--after", help="With --wait: the recordVersion of a step that is no news."),
    ] = None,
    timeout: Timeout = "2h",
) -> Result:
    """Show what to do next about a pull request; the exit code names it."""
    timeout_s = options.seconds(timeout) if wait else 0.0
    with interruptible(number):
        step = find_next_step(queue, number, after, timeout_s)
    end = typer.Exit(STEP_EXITS.get(str(step["kind"]), Exit.FALSE))
    return Result(step, lambda: output.print_next_step(step), end)


def find_next_step(queue: Queue, number: int, after: str | None, timeout_s: float) -> Json:
    """Return the next step once there is something to do, or time is over."""
    clock = queue.client.clock
    ends = clock.monotonic_s() + timeout_s
    version = after
    while True:
        left = ends - clock.monotonic_s()
        wait_s = None if version is None or left <= 0 else math.ceil(min(left, WAIT_MAX_S))
        step = queue.post_pull_request(
            "/getNextStep", number, sinceVersion=wait_s and version, waitFor=wait_s
        )
        version = str(step["recordVersion"])
        if is_due(step, after, clock) or ends - clock.monotonic_s() <= 0:
            return step


def is_due(step: Json, after: str | None, clock: Clock) -> bool:
    """Return whether there is something to do that is not known: neither WAIT nor too early."""
    at = step.get("at") if step["kind"] == "RESUBMIT" else None
    is_early = at is not None and datetime.fromisoformat(str(at)).timestamp() > clock.unix_s()
    return step["kind"] != "WAIT" and step["recordVersion"] != after and not is_early


@options.queue_command(app)
def land(
    queue: Queue,
    number: options.Number,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until it has left the queue.")
    ] = True,
    priority: Priority = None,
    sha: HeadSha = None,
    undoes: Undoes = None,
    again: Again = False,
    timeout: Timeout = "2h",
) -> Result:
    """Submit a pull request if needed and wait to the end; for scripts and agents."""
    timeout_s = options.seconds(timeout) if wait else 0.0
    try:
        with interruptible(number):
            submission = Submission(number, priority, sha=sha, undoes=undoes or (), again=again)
            record = submit_and_wait(queue, submission, timeout_s)
    except Refusal as refusal:
        step = refusal.problem.get("next_step")
        if not isinstance(step, dict):
            raise
        answer: Json = {"prNumber": number, "outcome": "refused", "nextStep": step}
        return Result(answer, lambda: output.print_next_step(step), refusal)
    if record["outcome"] in ("failed", "removed"):
        return shown(queue, record, typer.Exit(Exit.FALSE))
    is_late = wait and record["outcome"] == "timeout"
    return shown(queue, record, _still_queued(record) if is_late else None)


def submit_and_wait(queue: Queue, submission: Submission, timeout_s: float) -> Json:
    """Return the last record with `outcome`, `nextStep` and `explanation`; joins what is queued.

    `timeout_s` 0: submit without waiting. `outcome` is merged, failed, removed, or timeout while
    the pull request is still queued.
    """
    try:
        record = _post_submission(queue, submission)
    except Refusal as refusal:
        if refusal.problem_code not in OVER:
            raise
        record = _merged_record(queue, submission.number, refusal)
    if timeout_s:
        record = poll(queue, record, timeout_s)
    explanation = queue.post_pull_request("/explainPullRequest", submission.number)
    outcome = OUTCOMES.get(output.state_of(record), "timeout")
    step = explanation["nextStep"]
    return {**record, "outcome": outcome, "nextStep": step, "explanation": explanation}


def _merged_record(queue: Queue, number: int, refusal: Refusal) -> Json:
    """Return the record of a pull request that the queue has merged; else raises the refusal."""
    try:
        record = queue.post_pull_request("/getSubmittedPullRequest", number)
    except Refusal:
        raise refusal from None
    if output.state_of(record) != "MERGED":
        raise refusal
    return record


def _post_submission(queue: Queue, submission: Submission) -> Json:
    """Submit, and return the record; a second call joins the first."""
    return queue.post_pull_request(
        "/submitPullRequest",
        submission.number,
        pr=None if submission.sha is None else {"sha": submission.sha},
        priority=_parse_priority(submission.priority),
        noBatch=submission.no_batch,
        undoes=[_landing_of(each) for each in submission.undoes] or None,
        again=submission.again or None,
    )


def _landing_of(word: str) -> str:
    """Return how the API names a landing: a number alone is that of a pull request."""
    return f"#{word}" if word.isdecimal() and len(word) < COMMIT_CHARS_MIN else word.lower()


def _parse_priority(text: str | None) -> str | None:
    """Return the priority, a name in lower case. Raises Failed(USAGE) for any other word."""
    if text is None:
        return None
    from service.mergequeue.engine.model import PRIORITY_NAMES

    word = text.strip().lower()
    # Python refuses to read a number of thousands of digits.
    is_number = word.isascii() and word.isdecimal() and len(word) <= PRIORITY_DIGITS_MAX
    if word not in PRIORITY_NAMES and not (is_number and int(word) <= PRIORITY_MAX):
        names = ", ".join(PRIORITY_NAMES)
        raise Failed(
            Exit.USAGE, f"{text!r} is not a priority", f"Give {names} or 0 to {PRIORITY_MAX}"
        )
    return word


def _wait_until_final(queue: Queue, record: Json, timeout_s: float) -> Json:
    """Return the record in its final state. Raises Failed(TIMEOUT) if it is still queued then."""
    record = poll(queue, record, timeout_s)
    if output.state_of(record) not in OUTCOMES:
        raise _still_queued(record)
    return record


def _still_queued(record: Json) -> Failed:
    """Return the error for a wait that was shorter than the queue."""
    number = record["prNumber"]
    status = output.status_line(record).rstrip(".")
    return Failed(
        Exit.TIMEOUT,
        f"the wait is over and #{number} is still queued ({status})",
        f"It stays in the queue; wait again with `headgate status {number} --watch`",
    )


def poll(queue: Queue, record: Json, timeout_s: float) -> Json:
    """Return the newest record once it is final or the time is over."""
    # Its library takes a third of the start of a command that does not wait.
    from bot.cli.progress import WaitDisplay

    clock = queue.client.clock
    ends = clock.monotonic_s() + timeout_s
    number = int(str(record["prNumber"]))
    version: object = None
    with WaitDisplay() as display:
        display.show(record)
        while output.state_of(record) not in OUTCOMES and (left := ends - clock.monotonic_s()) > 0:
            seconds = None if version is None else math.ceil(min(left, WAIT_MAX_S))
            record = queue.post_pull_request(
                "/getSubmittedPullRequest", number, sinceVersion=version, waitFor=seconds
            )
            version = record["recordVersion"]
            display.show(record)
    return record


@contextmanager
def interruptible(number: int) -> Iterator[None]:
    """Report that Ctrl-C ends the waiting, but not the submission. Raises Failed(INTERRUPTED)."""
    try:
        yield
    except KeyboardInterrupt:
        raise Failed(
            Exit.INTERRUPTED,
            f"interrupted; #{number} keeps its place in the queue",
            f"`headgate cancel {number}` removes it",
        ) from None


def shown(queue: Queue, record: Json, end: Exception | None = None) -> Result:
    """Return a pull request's record as a command's result."""
    return Result(record, lambda: output.print_pull_request(record, queue.repo.slug), end)
