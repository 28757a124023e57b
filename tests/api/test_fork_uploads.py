"""`/setImpactedTargets` from a fork's CI run, which has no token (docs/design/security.md 1)."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.accounts import repositories
from service.http import callers
from service.http.health import Readiness
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import fork_runs, queues
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import pull_requests
from service.mergequeue.store import queues as stored_queues
from service.process.api import app
from service.provider.ci import CiRun, CiTrigger, PullRequestSource
from service.provider.errors import Throttled, Unavailable
from service.runtime import Runtime
from service.vocabulary import SYSTEM, CheckOutcome, RepoRef
from tests.api.wire import HandClock, Reply, Wire, connected, head, served
from tests.harness.values import ValuesProvider, sha_of

HEAD = sha_of("head", 7)
RUN = CiRun(
    id="42",
    attempt=1,
    trigger=CiTrigger.PULL_REQUEST,
    head_sha=HEAD,
    head_branch="topic",
    of_fork=True,
    pull_requests=(),
    is_running=True,
    outcome=CheckOutcome.RUNNING,
    started_at=datetime(2026, 1, 2, tzinfo=UTC),
    url="",
    head_repo="9",
)
SOURCE = PullRequestSource(7, "9", "topic", HEAD, is_fork=True)
UNAUTHENTICATED = callers.NO_TOKEN.encode()
REFUSED = fork_runs.REFUSED.format(run="42").encode()
FROM_42 = "x-forked-workflow-run-id: 42"


class ForkedProvider(ValuesProvider):
    """A provider with one run of CI, number 42."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__()
        self.clock = clock
        self.run: CiRun | None = RUN
        self.source: PullRequestSource | None = SOURCE
        self.throttled_until: datetime | None = None
        self.is_away = False
        self.asked = 0

    async def ci_run(self, repo: RepoRef, run_id: str, attempt: int | None = None) -> CiRun | None:
        self.asked += 1
        if self.throttled_until is not None:
            raise Throttled("The share is used up", self.throttled_until)
        if self.is_away:
            raise Unavailable("It is away.", self.clock.now() + timedelta(seconds=30))
        return self.run if run_id == "42" else None

    async def claimed_source(self, repo: RepoRef, number: int) -> PullRequestSource | None:
        return self.source if number == 7 else None


PARALLEL = QueueRequest({"mode": Mode.PARALLEL}, QueueState.PAUSED)


@pytest.fixture
def provider(clock: HandClock) -> ForkedProvider:
    return ForkedProvider(clock)


@pytest.fixture
async def asked(runtime: Runtime, provider: ForkedProvider) -> Runtime:
    """The runtime with that provider and a paused queue."""
    whole = replace(runtime, providers={provider.ref.host: provider})
    record = await whole.store.run(repositories.upsert, await provider.repository(provider.ref))
    await queues.create(whole, record, "main", PARALLEL, SYSTEM)
    return whole


@pytest.fixture
async def client(asked: Runtime) -> AsyncIterator[Wire]:
    ready = Readiness()
    ready.mark("recovery", "ok")
    async with served(app.build_app(asked, ready)) as port, connected(port) as wire:
        yield wire


def body(sha: str | None = HEAD, name: str = "widgets") -> bytes:
    """An upload for pull request 7."""
    pr = {"number": 7} if sha is None else {"number": 7, "sha": sha}
    repo = {"host": "values.test", "owner": "octo", "name": name}
    return json.dumps(
        {"repo": repo, "targetBranch": "main", "pr": pr, "impactedTargets": ["//a"]}
    ).encode()


async def upload(client: Wire, *lines: str, sent: bytes | None = None, to: str = "") -> Reply:
    """What an upload answers."""
    data = body() if sent is None else sent
    length = f"Content-Length: {len(data)}"
    await client.send(head(to or "/v1/setImpactedTargets", *lines, length), data)
    return await client.reply()


async def test_a_running_ci_run_of_a_fork_says_what_its_head_touches(client, asked):
    answer = await upload(client, FROM_42)
    assert (answer.status, json.loads(answer.body)["targetCount"]) == (200, 1)
    kept = await asked.store.read(pull_requests.targets_of, 1, [(7, HEAD)])
    assert kept == {(7, HEAD): targets.of(["//a"])}


@pytest.mark.parametrize(
    "run",
    [
        None,
        replace(RUN, of_fork=False),
        replace(RUN, is_running=False),
        replace(RUN, head_sha=sha_of("another")),
    ],
)
async def test_any_other_run_is_no_credential(client, provider, run):
    provider.run = run
    answer = await upload(client, FROM_42)
    assert (answer.status, answer.body) == (401, REFUSED)
    assert answer.headers["content-type"] == "application/plain-text"


@pytest.mark.parametrize(
    "source",
    [
        None,
        replace(SOURCE, is_fork=False),
        replace(SOURCE, head_repo="8"),
        replace(SOURCE, head_repo=""),
        replace(SOURCE, head_branch="other"),
        replace(SOURCE, head_sha=sha_of("another")),
    ],
)
async def test_a_proved_run_is_refused_for_a_pull_request_that_is_not_its_own(
    client, provider, source
):
    provider.source = source
    answer = await upload(client, FROM_42)
    problem = json.loads(answer.body)
    assert (answer.status, problem["code"]) == (403, "not_own_pull_request")
    assert "#7" in problem["detail"]


async def test_a_head_known_to_be_another_is_refused_without_a_call(client, provider, asked):
    newer = pull_requests.PullRequestHead(1, 7, sha_of("newer"))
    await asked.store.run(pull_requests.remember_head, newer, None, asked.clock.now())
    answer = await upload(client, FROM_42)
    assert (answer.status, answer.body, provider.asked) == (401, REFUSED, 0)


async def test_a_branch_without_a_queue_is_refused_without_a_call(client, provider):
    answer = await upload(client, FROM_42, sent=body().replace(b'"main"', b'"release"'))
    assert (answer.status, answer.body, provider.asked) == (401, REFUSED, 0)


async def test_a_queue_that_is_not_parallel_takes_no_targets_of_forks(client, provider, asked):
    (queue,) = await asked.store.read(stored_queues.queues_of, 1)
    await queues.update(asked, queue, QueueRequest({"mode": Mode.SINGLE}, None), SYSTEM)
    answer = await upload(client, FROM_42)
    assert (answer.status, answer.body, provider.asked) == (401, REFUSED, 0)


async def test_a_refused_run_is_asked_about_once_a_minute(client, provider, clock):
    provider.run = None
    for _ in range(3):
        assert (await upload(client, FROM_42)).status == 401
    assert provider.asked == 1
    clock.advance(61)
    provider.run = RUN
    assert (await upload(client, FROM_42)).status == 200


async def test_a_share_that_is_used_up_is_told_with_when_to_come_back(client, provider, clock):
    provider.throttled_until = clock.now() + timedelta(seconds=90)
    answer = await upload(client, FROM_42)
    assert (answer.status, json.loads(answer.body)["code"]) == (429, "rate_limited")
    assert answer.headers["retry-after"] == "90"


async def test_without_a_well_formed_number_nobody_is_asked(client, provider):
    for lines in ((), ("x-forked-workflow-run-id: 4x2",), ("x-forked-workflow-run-id:",)):
        answer = await upload(client, *lines)
        assert (answer.status, answer.body) == (401, UNAUTHENTICATED)
    assert provider.asked == 0


async def test_a_repository_that_is_not_there_looks_like_a_wrong_run(client, provider):
    answer = await upload(client, FROM_42, sent=body(name="other"))
    assert (answer.status, answer.body, provider.asked) == (401, UNAUTHENTICATED, 0)


async def test_the_head_must_be_named(client):
    answer = await upload(client, FROM_42, sent=body(sha=None))
    fault = json.loads(answer.body)
    assert (answer.status, fault["errors"][0]["field"]) == (400, "/pr/sha")


async def test_a_provider_that_is_away_is_no_wrong_credential(client, provider):
    provider.is_away = True
    answer = await upload(client, FROM_42)
    assert (answer.status, json.loads(answer.body)["code"]) == (503, "provider_unavailable")
    assert answer.headers["retry-after"] == "30"


async def test_no_other_endpoint_takes_it(client):
    assert (await upload(client, FROM_42, to="/v1/getQueue")).status == 401


async def test_a_token_that_is_wrong_is_not_saved_by_the_header(client, provider):
    answer = await upload(client, FROM_42, "x-api-token: hgt_wrong")
    assert (answer.status, provider.asked) == (401, 0)


async def test_ten_a_minute_come_from_one_address(client, clock):
    for _ in range(10):
        assert (await upload(client, FROM_42)).status == 200
    answer = await upload(client, FROM_42)
    assert (answer.status, json.loads(answer.body)["code"]) == (429, "rate_limited")
    assert answer.headers["retry-after"] == "60"
    clock.advance(60)
    assert (await upload(client, FROM_42)).status == 200


async def test_with_a_valid_token_the_header_is_ignored(client, provider, admin):
    answer = await upload(client, FROM_42, f"x-api-token: {admin}")
    assert (answer.status, provider.asked) == (404, 0)
