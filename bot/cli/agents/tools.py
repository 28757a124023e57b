"""The tools for agents. Their docstrings are what an agent reads."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from bot.cli import destination, output, pull_requests
from bot.cli.agents.answers import (
    Explanation,
    NextStep,
    Preview,
    PullRequestState,
    QueueList,
    TestList,
)
from bot.cli.client import Client, Refusal
from bot.cli.destination import Queue, Repository
from bot.cli.exits import Failed, plain_sentence
from bot.cli.pull_requests import Submission
from bot.uploader.transport import Json

T = TypeVar("T")

READS = ToolAnnotations(read_only_hint=True)

# One long poll. It is short so that a stopping server waits for no longer.
POLL_S = 10
TESTS_MAX = 50
QUEUES_MAX = 100

Call = Context[object, object]
Number = Annotated[int, Field(ge=1, description="The pull request's number.")]
Repo = Annotated[
    str | None,
    Field(description="[HOST/]OWNER/NAME. Default: the repository of the current checkout."),
]
Seconds = Annotated[
    int, Field(ge=1, le=600, description="How long to wait. Call again if it is still waiting.")
]


@dataclass(frozen=True, slots=True)
class Session:
    """The service that is asked, and where its requests run.

    `token` is empty if each call brings its own; `repo` is the default repository.
    """

    url: str
    token: str
    repo: str | None
    threads: Executor

    async def run(self, call: Call, ask: Callable[[Client], T]) -> T:
        """Return what `ask` answers with the caller's token. Raises ToolError with the mend."""
        client = destination.connect(self.url, self.token or token_of(call))
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.threads, ask, client)
        except Failed as failed:
            raise ToolError(_words_of(failed)) from failed

    def queue(self, client: Client, repo: str | None) -> Queue:
        """Return the queues of the repository, the pull request names which."""
        ref = destination.find_repository(repo or self.repo, client)
        return Queue(client, ref, given_branch=None)


def token_of(call: Call) -> str:
    """Return the token of an HTTP request, which the server has verified. Raises ToolError."""
    user = getattr(call.request_context.request, "user", None)
    if not isinstance(user, AuthenticatedUser):
        raise ToolError("The request has no token. Send one as `Authorization: Bearer`.")
    return user.access_token.token


class Tools:
    """The tools over one session."""

    reads = frozenset(
        {
            "wait_for_pull_request",
            "explain_pull_request",
            "what_now",
            "what_if",
            "list_flaky_tests",
            "list_queues",
        }
    )

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> tuple[Callable[..., object], ...]:
        """Return the tools, in the order in which agents see them."""
        return (
            self.what_now,
            self.land_pull_request,
            self.wait_for_pull_request,
            self.explain_pull_request,
            self.what_if,
            self.cancel_pull_request,
            self.list_flaky_tests,
            self.list_queues,
        )

    async def land_pull_request(
        self,
        call: Call,
        number: Number,
        repo: Repo = None,
        priority: Annotated[
            str | None, Field(description="urgent, high, medium, low, lowest or 0 to 255.")
        ] = None,
        sha: Annotated[
            str | None,
            Field(description="Refuse if this is not its head; the first 7 characters suffice."),
        ] = None,
        undoes: Annotated[
            list[str] | None,
            Field(description="Merged work that it takes back on purpose: #7, or a commit."),
        ] = None,
        again: Annotated[
            bool,
            Field(description="Test a head that failed before, unchanged; needs role admin."),
        ] = False,
    ) -> PullRequestState:
        """Submit a pull request to the merge queue of its base branch and return its state.

        It lands by itself once it is ready and its tests passed. A second call joins the first;
        for a merged pull request the outcome is "merged". Then call what_now.
        """

        def ask(client: Client) -> PullRequestState:
            queue = self._session.queue(client, repo)
            submission = Submission(number, priority, sha=sha, undoes=undoes or (), again=again)
            record = pull_requests.submit_and_wait(queue, submission, 0.0)
            return state_of(queue, record)

        return await self._session.run(call, ask)

    async def wait_for_pull_request(
        self, call: Call, number: Number, repo: Repo = None, seconds: Seconds = 50
    ) -> PullRequestState:
        """Wait until a submitted pull request has left the queue, and return its state.

        Returns earlier with outcome "waiting" when the time is over; call it again then. Each
        change is reported as progress.
        """
        session = self._session
        queue = await session.run(call, lambda client: session.queue(client, repo))
        clock = queue.client.clock
        ends_s = clock.monotonic_s() + seconds
        version: object = None
        while True:
            left_s = ends_s - clock.monotonic_s()
            poll_s = max(1, min(POLL_S, math.ceil(left_s)))
            record = await session.run(call, _poll_of(queue, number, version, poll_s))
            if output.state_of(record) in pull_requests.OUTCOMES or left_s <= 0:
                return state_of(queue, await session.run(call, explained(queue, record)))
            version = record["recordVersion"]
            await call.report_progress(seconds - left_s, seconds, output.status_line(record))

    async def explain_pull_request(
        self, call: Call, number: Number, repo: Repo = None
    ) -> Explanation:
        """Explain why a submitted pull request is not merged yet: each condition, met or open."""
        return await self._session.run(
            call,
            lambda client: _explanation_of(self._session.queue(client, repo), number),
        )

    async def what_now(
        self,
        call: Call,
        number: Number,
        repo: Repo = None,
        seconds: Annotated[
            int, Field(ge=0, le=600, description="How long to wait for something to do.")
        ] = 0,
        after: Annotated[
            str | None, Field(description="The version of a step that you know: wait for another.")
        ] = None,
    ) -> NextStep:
        """Tell the one thing to do next about a pull request, submitted or not; then do it.

        WAIT: call again with `seconds`. FIX: repair what failed, push. REBASE: rebase onto
        `commit`, push. RESUBMIT, SUBMIT: not before `at`. ASK: ask `person`, or who must act, for
        what `text` says. SUPERSEDED, DROP: give it up. DONE: it has landed. Then make the call
        that `call` names.
        """
        session = self._session
        queue = await session.run(call, lambda client: session.queue(client, repo))
        clock = queue.client.clock
        ends_s = clock.monotonic_s() + seconds
        version = after
        while True:
            left_s = ends_s - clock.monotonic_s()
            poll_s = min(POLL_S, math.ceil(left_s))
            step = await session.run(call, _step_of(queue, number, version, poll_s))
            version = str(step["recordVersion"])
            is_due = pull_requests.is_due(step, after, clock)
            if is_due or ends_s - clock.monotonic_s() <= 0:
                return NextStep.model_validate(step)
            await call.report_progress(seconds - left_s, seconds, str(step["text"]))

    async def what_if(
        self,
        call: Call,
        number: Number,
        change: Annotated[
            Literal["remove", "urgent", "high", "medium", "low", "lowest"],
            Field(description="Take it out of the queue, or give it another priority."),
        ],
        repo: Repo = None,
    ) -> Preview:
        """Preview a change of a queued pull request without making it."""

        def ask(client: Client) -> Preview:
            queue = self._session.queue(client, repo)
            if change == "remove":
                answer = queue.post_pull_request("/previewCancelPullRequest", number)
            else:
                answer = queue.post_pull_request("/previewPriority", number, priority=change)
            return Preview.model_validate({**answer, "change": change})

        return await self._session.run(call, ask)

    async def cancel_pull_request(
        self,
        call: Call,
        number: Number,
        reason: Annotated[str, Field(description="Why, for the record.")],
        repo: Repo = None,
    ) -> PullRequestState:
        """Remove a pull request from the merge queue."""

        def ask(client: Client) -> PullRequestState:
            queue = self._session.queue(client, repo)
            record = queue.post_pull_request("/cancelPullRequest", number, reason=reason)
            return state_of(queue, explained(queue, record)(client))

        return await self._session.run(call, ask)

    async def list_flaky_tests(
        self,
        call: Call,
        repo: Repo = None,
        status: Literal["flaky", "broken", "all"] = "flaky",
        owner: Annotated[
            str | None, Field(description="Only tests of this code owner, or of none.")
        ] = None,
        search: Annotated[
            str | None, Field(description="Part of the name, file, class or suite.")
        ] = None,
    ) -> TestList:
        """List flaky or broken tests, at most 50, those first that hit most pull requests."""
        given = {"status": None if status == "all" else status, "owner": owner, "search": search}

        def ask(client: Client) -> TestList:
            ref = destination.find_repository(repo or self._session.repo, client)
            wanted: Json = {name: value for name, value in given.items() if value is not None}
            wanted["page_query"] = {"page_size": TESTS_MAX}
            answer = Repository(client, ref).post("/list-tests", wanted)
            return TestList.model_validate(answer)

        return await self._session.run(call, ask)

    async def list_queues(self, call: Call) -> QueueList:
        """List the merge queues that the token sees: state, mode and how much is queued."""

        def ask(client: Client) -> QueueList:
            answer = client.post("/listQueues", {"take": QUEUES_MAX})
            return QueueList.model_validate(answer)

        return await self._session.run(call, ask)


def _words_of(failed: Failed) -> str:
    """Return what went wrong, and the next step where the service says it."""
    said = plain_sentence(failed.what, failed.todo)
    step = failed.problem.get("next_step") if isinstance(failed, Refusal) else None
    if not isinstance(step, dict):
        return said
    told = NextStep.model_validate(step).model_dump_json()
    return f"{said}\nnext_step: {told}"


def _poll_of(queue: Queue, number: int, version: object, seconds: int) -> Callable[[Client], Json]:
    """Return the request that waits up to `seconds` for a change since `version`.

    Without a version it does not wait.
    """
    wait_s = None if version is None else seconds

    def ask(_client: Client) -> Json:
        return queue.post_pull_request(
            "/getSubmittedPullRequest", number, sinceVersion=version, waitFor=wait_s
        )

    return ask


def _step_of(
    queue: Queue, number: int, version: str | None, seconds: int
) -> Callable[[Client], Json]:
    """Return the request that waits up to `seconds` for a step of another version."""
    wait_s = seconds if version is not None and seconds > 0 else None

    def ask(_client: Client) -> Json:
        return queue.post_pull_request(
            "/getNextStep", number, sinceVersion=wait_s and version, waitFor=wait_s
        )

    return ask


def explained(queue: Queue, record: Json) -> Callable[[Client], Json]:
    """Return the request that adds what failed and what to do next to a record."""

    def ask(_client: Client) -> Json:
        number = int(str(record["prNumber"]))
        return {**record, "explanation": queue.post_pull_request("/explainPullRequest", number)}

    return ask


def state_of(queue: Queue, record: Json) -> PullRequestState:
    """Return the state that a record shows."""
    branch = queue.branch_of(int(str(record["prNumber"])))
    place = {"repository": queue.repo.slug, "target_branch": branch}
    return PullRequestState.model_validate({**record, **place})


def _explanation_of(queue: Queue, number: int) -> Explanation:
    """Return why the pull request is not merged yet."""
    return Explanation.model_validate(queue.post_pull_request("/explainPullRequest", number))
