"""The metrics page over a real store: windows, counters that stay, what each caller sees."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from service.accounts import repositories, tokens
from service.accounts.store import access as stored_access
from service.accounts.tenants import RepositoryRecord
from service.accounts.tokens import TokenRequest
from service.http.callers import Caller
from service.memory import Memory
from service.mergequeue.engine.states import QueueState
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import counting, pull_requests, queues
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.process import figures, retention
from service.process.store import retention as stored_retention
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoId, Role
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock

DAY_S = 86_400.0


@pytest.fixture
def caller(queue: QueueRef) -> Caller:
    """Who sees all of the organization."""
    return Caller("t", "all", queue.org_id, "octo", queue.repo.host, Role.READ, None)


async def page(runtime: Runtime, caller: Caller) -> dict[str, float]:
    """Series as they are written, with their values."""
    text = (await figures.page(runtime, caller, None)).decode()
    assert list(parsed(text))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def mq(name: str, more: str = "") -> str:
    return f'{name}{{repo="octo/widgets",branch="main",queue_type="main"{more}}}'


def hg(name: str, more: str = "") -> str:
    return f'headgate_{name}{{host="values.test",repo="octo/widgets",branch="main"{more}}}'


async def waited(runtime: Runtime, clock: WaitingClock, queue: QueueRef) -> None:
    """One submission that waits for 90 seconds and is tested then."""
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    await clock.sleep(90)
    await queues.set_state(runtime, queue, QueueState.RUNNING, "go", Requester(SYSTEM))


async def test_the_hour_slides_and_counters_stay(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef, caller: Caller
):
    await waited(runtime, clock, queue)
    rolling, lasting = "mq_pr_wait_duration_1h_seconds", "wait_duration_seconds"
    within = await page(runtime, caller)
    assert within[mq(f"{rolling}_bucket", ',le="60"')] == 0
    assert within[mq(f"{rolling}_bucket", ',le="300"')] == 1
    assert within[mq(f"{rolling}_sum")] == within[hg(f"{lasting}_sum")] == 90
    await clock.sleep(3599)
    later = await page(runtime, caller)
    assert later[mq(f"{rolling}_count")] == 1
    assert later[hg("queue_oldest_pull_request_age_seconds")] == 90 + 3599
    await clock.sleep(1)
    after = await page(runtime, caller)
    assert after[mq(f"{rolling}_count")] == after[mq(f"{rolling}_sum")] == 0
    assert after[hg(f"{lasting}_count")] == 1
    assert after[hg(f"{lasting}_bucket", ',le="300"')] == 1


async def test_every_instance_shows_the_same_after_restarts_and_retention(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef, caller: Caller
):
    await waited(runtime, clock, queue)
    first = await figures.page(runtime, caller, None)
    other = replace(runtime, memory=Memory())
    assert await figures.page(other, caller, None) == first
    await pull_requests.cancel(other, queue, 7, SYSTEM)
    assert await figures.page(runtime, caller, None) == await figures.page(other, caller, None)
    shown = await page(runtime, caller)
    ended = next(name for name in shown if "left_total" in name and shown[name])
    await clock.sleep(500 * DAY_S)
    while await runtime.store.run(
        stored_retention.prune, clock.now(), stored_retention.RetentionLimits()
    ):
        pass
    again = await page(replace(runtime, memory=Memory()), caller)
    assert again[ended] == 1
    assert again[hg("wait_duration_seconds_sum")] == 90


async def test_facts_of_the_hour_are_forgotten_after_it(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef, caller: Caller
):
    await waited(runtime, clock, queue)
    kept = await page(runtime, caller)
    await clock.sleep(3590)
    await retention.prune(runtime)
    assert (await page(replace(runtime, memory=Memory()), caller))[
        mq("mq_pr_wait_duration_1h_seconds_count")
    ] == kept[mq("mq_pr_wait_duration_1h_seconds_count")]
    await clock.sleep(20)
    assert await retention.prune(runtime)
    assert not await retention.prune(runtime)


async def test_a_landing_without_an_answer_shows_although_no_turn_hears_of_it(
    runtime: Runtime, queue: QueueRef, caller: Caller
):
    unknown = hg("landings_total", ',result="unknown"')
    assert (await page(runtime, caller))[unknown] == 0
    now = runtime.clock.now()
    await runtime.store.run(counting.count_landing, queue, LandingState.UNKNOWN, now)
    assert (await page(runtime, caller))[unknown] == 1


async def test_an_organization_on_several_hosts_names_them(
    runtime: Runtime, provider: ValuesProvider, queue: QueueRef, caller: Caller
):
    fresh = await provider.repository(provider.ref)
    elsewhere = replace(provider.ref, host="other.test")
    moved = replace(fresh, ref=elsewhere, id=RepoId("other.test", "9"))
    record = await runtime.store.run(repositories.upsert, moved)
    same = replace(runtime, providers={**runtime.providers, "other.test": provider})
    await queues.create(same, record, "main", QueueRequest({}, QueueState.PAUSED), SYSTEM)
    await runtime.store.run(
        lambda session: session.exec_driver_sql(
            f"UPDATE repository SET org_id = {queue.org_id} WHERE id = {record.id}"
        )
    )
    shown = await page(same, caller)
    for host in ("values.test", "other.test"):
        labels = f'repo="{host}/octo/widgets",branch="main",queue_type="main"'
        assert f"mq_depth_current{{{labels}}}" in shown
    assert hg("landings_total", ',result="landed"') in shown
    narrow = replace(caller, repositories=frozenset({record.id}))
    assert hg("landings_total", ',result="landed"') not in await page(same, narrow)


async def test_a_page_has_the_queues_of_the_repository_that_is_asked_for_and_seen(
    runtime: Runtime, provider: ValuesProvider, queue: QueueRef, caller: Caller
):
    fresh = await provider.repository(provider.ref)
    beside = replace(
        fresh, ref=replace(provider.ref, name="gadgets"), id=RepoId("values.test", "9")
    )
    gadgets = await runtime.store.run(repositories.upsert, beside)
    await queues.create(runtime, gadgets, "main", QueueRequest({}, QueueState.RUNNING), SYSTEM)
    widgets = await runtime.store.read(stored_access.repository, queue.repository_id)

    async def shown(asked: RepositoryRecord | None, *seen: RepositoryRecord) -> set[str]:
        scope = frozenset(each.id for each in seen) or None
        by = replace(caller, repositories=scope)
        text = (await figures.page(runtime, by, asked)).decode()
        names = {each.ref.name for each in (widgets, gadgets)}
        return {name for name in names if f'repo="octo/{name}"' in text}

    assert await shown(None) == {"widgets", "gadgets"}
    assert await shown(widgets) == {"widgets"}
    assert await shown(None, gadgets) == {"gadgets"}
    assert await shown(widgets, gadgets) == set()


async def test_a_queue_has_one_state(runtime: Runtime, queue: QueueRef, caller: Caller):
    for state in (QueueState.PAUSED, QueueState.RUNNING):
        await queues.set_state(runtime, queue, state, None, Requester(SYSTEM))
        shown = await page(runtime, caller)
        states = {each: shown[hg("queue_state", f',state="{each}"')] for each in QueueState}
        assert states == {each: float(each is state) for each in QueueState}


async def test_a_new_queue_has_a_zero_for_each_word_that_may_come(
    runtime: Runtime, queue: QueueRef, caller: Caller
):
    shown = await page(runtime, caller)

    def words(name: str, label: str, among: str = "") -> set[str]:
        series = [each for each in shown if each.startswith(f"headgate_{name}{{") and among in each]
        return {each.partition(f'{label}="')[2].partition('"')[0] for each in series}

    live = {"NOT_READY", "PENDING", "TESTING", "TESTS_PASSED", "PENDING_FAILURE"}
    assert words("queue_pull_requests", "state") == live
    restarts = words("pull_request_restarts_total", "reason")
    assert {"ahead_failed", "now_ready", "landed"} & restarts == {"ahead_failed"}
    ends = {"merged": "landed", "failed": "interaction", "cancelled": "api_requested"}
    for conclusion, reason in ends.items():
        reasons = words("pull_requests_left_total", "reason", f'conclusion="{conclusion}"')
        assert {*ends.values(), "now_ready"} & reasons == {reason}
    causes = {"succeeded": "quarantined_only", "failed": "pr_fault"}
    for status, cause in causes.items():
        found = words("test_runs_total", "cause", f'status="{status}"')
        assert set(causes.values()) & found == {cause}


async def test_tokens_that_expire_soon_are_counted_by_who_may_see_them(
    runtime: Runtime, queue: QueueRef, caller: Caller
):
    host = queue.repo.host
    wishes = [
        TokenRequest(host, "octo", "soon", Role.READ, expires_in_days=13),
        TokenRequest(host, "octo", "late", Role.READ, expires_in_days=15),
        TokenRequest(host, "octo", "mine", Role.READ, (queue.repo,), expires_in_days=13),
        TokenRequest(host, "initech", "foreign", Role.READ, expires_in_days=13),
    ]
    for wish in wishes:
        await tokens.create_token(runtime, wish, SYSTEM)
    assert (await page(runtime, caller))["headgate_tokens_expiring"] == 2
    narrow = replace(caller, repositories=frozenset({queue.repository_id + 1}))
    assert (await page(runtime, narrow))["headgate_tokens_expiring"] == 1


async def test_a_token_that_has_a_successor_is_not_told_to_expire(
    runtime: Runtime, queue: QueueRef, caller: Caller
):
    wish = TokenRequest(queue.repo.host, "octo", "late", Role.READ)
    old = (await tokens.create_token(runtime, wish, SYSTEM)).view
    await tokens.rotate_token(runtime, old.id, 24, SYSTEM)
    assert (await page(runtime, caller))["headgate_tokens_expiring"] == 0


async def test_without_queues_the_page_is_a_page(runtime: Runtime, caller: Caller):
    stranger = replace(caller, org_id=caller.org_id + 1000)
    assert await page(runtime, stranger) == {"headgate_tokens_expiring": 0}
