"""Test branches of several pull requests: names, texts, and commits that are used again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from service.accounts.store import access
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Bisection, Member, MergeQueue, Run, RunStep, Tip
from service.mergequeue.engine.outputs import BuildTestBranch, HeadToMerge, RetireRun, Step
from service.mergequeue.engine.states import RunKind, RunPhase, RunStatus
from service.mergequeue.operations import building, naming, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.provider.audits import DryTest, DryTestRequest
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode, Unavailable
from service.provider.values import BuildRequest, BuildResult, Conflicted, PullRequest, Vehicle
from service.runtime import Runtime
from service.vocabulary import SYSTEM, CheckOutcome, MergeMethod, QueueRef, RepoRef, Sha
from tests.harness.values import ValuesProvider, sha_of
from tests.operations.conftest import WaitingClock
from tests.store.builders import a_check, a_run, an_entry

BASE = Tip(Sha("a" * 40), Sha("b" * 40))


class AskedProvider(ValuesProvider):
    """Keeps what it was asked to build, and is away then."""

    def __init__(self, clock: WaitingClock) -> None:
        super().__init__()
        self.clock = clock
        self.requests: list[BuildRequest] = []
        self.discarded: list[str] = []
        self.prepared: list[tuple[str, str]] = []
        self.repeats = False
        self.conflict: Conflicted | None = None
        self.gone: set[int] = set()

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        if number in self.gone:
            raise Gone(f"Pull request {number} is gone.", GoneKind.PULL_REQUEST)
        return await super().pull_request(repo, number, awaits_mergeability=awaits_mergeability)

    async def repeats_commits(self, repo: RepoRef, target: str) -> bool:
        return self.repeats

    async def build(self, request: BuildRequest) -> BuildResult:
        self.requests.append(request)
        if self.conflict is not None:
            return self.conflict
        raise Unavailable("It is away.", self.clock.now() + timedelta(seconds=1))

    async def prepare(self, repo: RepoRef, target: str) -> None:
        self.prepared.append((repo.slug, target))
        raise Unavailable("It is away.", self.clock.now() + timedelta(seconds=1))

    async def discard(self, repo: RepoRef, branch: str) -> None:
        self.discarded.append(branch)


@pytest.fixture
def provider(clock: WaitingClock) -> AskedProvider:
    return AskedProvider(clock)


def members(*prs: int) -> tuple[Member, ...]:
    return tuple(Member(pr, f"e{pr}", sha_of("head", pr)) for pr in prs)


def a_live_run(name: str, prs: Sequence[int], *, base: Sequence[int] = (), **given) -> Run:
    """A run of these pull requests on those; `built` says that its chain stands."""
    chain = members(*base, *prs)
    is_built = given.pop("built", True)
    steps = tuple(
        RunStep(one.pr, one.head, sha_of(name, one.pr), sha_of(name, "tree", one.pr), False)
        for one in chain
    )
    default = {
        "entries": members(*prs),
        "base": members(*base),
        "base_tip": BASE,
        "steps": steps if is_built else (),
        "sha": steps[-1].commit if is_built else None,
        "phase": RunPhase.TESTING if is_built else RunPhase.BUILDING,
        "config": QueueConfig(),
    }
    return a_run(name, prs=tuple(prs), **(default | given))


def an_action(run: Run) -> BuildTestBranch:
    heads = [HeadToMerge(one.pr, one.head, tested=False) for one in run.base]
    heads += [HeadToMerge(one.pr, one.head, tested=True) for one in run.entries]
    return BuildTestBranch(run.id, run.prs[0], "main", BASE, tuple(heads), (), bisection=False)


async def live(runtime: Runtime, queue: QueueRef, *runs: Run, **fields) -> None:
    """These runs are those of the queue."""
    before = await turn.value(runtime, queue.id)
    after: MergeQueue = replace(before, runs={run.id: run for run in runs}, **fields)
    await runtime.store.run(
        lambda session: stored_queues.save(session, before, Step(after, (), (), None, None))
    )
    runtime.store.caches.of(QueueCache).drop(queue.id)


async def asked(
    runtime: Runtime, provider: AskedProvider, queue: QueueRef, *runs: Run, **fields
) -> BuildRequest:
    """What the provider is asked to build of the last run, while the others are live."""
    await live(runtime, queue, *runs, **fields)
    with pytest.raises(Unavailable):
        await building.build(runtime, queue, an_action(runs[-1]))
    return provider.requests[-1]


def commits(request: BuildRequest) -> list[Sha | None]:
    return [step.commit for step in request.steps]


async def test_a_batch_goes_on_from_the_whole_chain_of_the_one_ahead(runtime, provider, queue):
    ahead = a_live_run("r1", [1, 2])
    behind = a_live_run("r2", [3, 4], base=[1, 2], built=False)
    request = await asked(runtime, provider, queue, ahead, behind)
    assert commits(request) == [ahead.steps[0].commit, ahead.steps[1].commit, None, None]
    assert [step.tested for step in request.steps] == [False, False, True, True]


async def test_runs_that_part_share_what_they_begin_with(runtime, provider, queue):
    ahead = a_live_run("r1", [1, 2, 3])
    other = a_live_run("r2", [4], base=[1, 3], built=False)
    request = await asked(runtime, provider, queue, ahead, other)
    assert commits(request) == [ahead.steps[0].commit, None, None]


async def test_a_run_on_another_tip_shares_nothing(runtime, provider, queue):
    elsewhere = Tip(Sha("c" * 40), Sha("d" * 40))
    ahead = a_live_run("r1", [1, 2], base_tip=elsewhere)
    behind = a_live_run("r2", [3], base=[1, 2], built=False)
    assert commits(await asked(runtime, provider, queue, ahead, behind)) == [None, None, None]


async def test_a_run_on_what_has_landed_of_the_line_goes_on_from_its_chain(
    runtime, provider, queue
):
    earlier = Tip(Sha("c" * 40), Sha("d" * 40))
    landed = RunStep(1, sha_of("head", 1), BASE.sha, BASE.tree, False)
    ahead = a_live_run("r2", [2], base=[1], base_tip=earlier)
    ahead = replace(ahead, steps=(landed, ahead.steps[1]))
    behind = a_live_run("r3", [3], base=[2], built=False)
    request = await asked(runtime, provider, queue, ahead, behind)
    assert commits(request) == [ahead.steps[1].commit, None]


async def test_a_head_that_was_in_already_keeps_its_place_in_the_chain(runtime, provider, queue):
    earlier = Tip(Sha("c" * 40), Sha("d" * 40))
    first, second = (RunStep(pr, sha_of("head", pr), BASE.sha, BASE.tree, pr == 2) for pr in (1, 2))
    ahead = a_live_run("r2", [3], base=[1, 2], base_tip=earlier)
    ahead = replace(ahead, steps=(first, second, ahead.steps[2]))
    behind = a_live_run("r3", [4], base=[2, 3], built=False)
    request = await asked(runtime, provider, queue, ahead, behind)
    assert commits(request) == [BASE.sha, ahead.steps[2].commit, None]


async def test_a_head_ahead_is_merged_as_the_run_that_tests_it_does(runtime, provider, queue):
    earlier = runtime.clock.now() - timedelta(minutes=5)
    provider.repeats = True
    ahead = a_live_run("r1", [1], created_at=earlier, built=False)
    behind = a_live_run("r2", [2], base=[1], built=False)
    entry = an_entry(1, run="r1", head=sha_of("head", 1))
    request = await asked(runtime, provider, queue, ahead, behind, entries={1: entry})
    runs = [each.message.split("Headgate-Run: ")[1].split("\n")[0] for each in request.steps]
    dates = [each.date for each in request.steps]
    assert (runs, dates) == (["r1", "r2"], [earlier, behind.created_at])


async def test_a_head_ahead_that_its_run_does_not_test_is_merged_as_the_new_run_does(
    runtime, provider, queue
):
    ahead = a_live_run("r1", [1], created_at=runtime.clock.now() - timedelta(minutes=5))
    behind = a_live_run("r2", [3], base=[2], built=False)
    entry = an_entry(2, run="r1", head=sha_of("head", 2))
    request = await asked(runtime, provider, queue, ahead, behind, entries={2: entry})
    assert [each.date for each in request.steps] == [behind.created_at] * 2


class Counting(ValuesProvider):
    """Counts the test branches of a tip that it is asked to start."""

    started = 0

    async def start_dry_test(self, request: DryTestRequest) -> DryTest:
        self.started += 1
        return await super().start_dry_test(request)


@pytest.mark.parametrize(("built", "started"), [(True, 0), (False, 1)])
async def test_the_test_branch_of_a_tip_is_built_once(runtime, queue, built, started):
    counting = Counting()
    run = a_live_run("r1", [1], built=built, kind=RunKind.TIP)
    await live(runtime, queue, replace(run, entries=(), steps=()))
    runtime = replace(runtime, providers={queue.repo.host: counting})
    await building.build_of_tip(runtime, queue, replace(an_action(run), steps=()))
    assert counting.started == started


async def test_a_probe_is_a_prefix_of_the_failed_run_but_for_its_last_head(
    runtime, provider, queue
):
    failed = a_live_run(
        "r1",
        [1, 2, 3, 4],
        status=RunStatus.FAILED,
        checks=(a_check("unit", CheckOutcome.FAILED), a_check("lint")),
    )
    probe = a_live_run("r2", [1, 2], kind=RunKind.PROBE, bisection="b1", built=False)
    bisection = Bisection("b1", "r1", failed.entries, (), BASE, 0, 4, {4: ("r1",)}, {2: "r2"})
    request = await asked(runtime, provider, queue, failed, probe, bisections={"b1": bisection})
    assert commits(request) == [failed.steps[0].commit, None]
    assert request.branch == "headgate/merge/pr-1/r2-bisection"
    assert request.scratch == "headgate/temp/pr-1/r2-bisection"
    block = json.loads(request.body.split("```json\n")[1].split("```")[0])
    assert (block["bisection"], block["failed_before"]) == (True, ["unit"])
    assert [one["number"] for one in block["tested"]] == [1, 2]


async def test_a_build_waits_for_the_one_whose_chain_it_continues(runtime, provider, queue, clock):
    ahead = a_live_run("r1", [1, 2], built=False)
    behind = a_live_run("r2", [3, 4], base=[1, 2], built=False)
    await asked(runtime, provider, queue, ahead, behind)
    assert sum(clock.waits) == building.WAIT_FOR_BUILD_S


async def test_it_waits_for_one_with_an_older_base_from_which_only_the_rest_is_left(
    runtime, provider, queue, clock
):
    earlier = Tip(Sha("c" * 40), Sha("d" * 40))
    ahead = a_live_run("r1", [2], base=[1], base_tip=earlier, built=False)
    behind = a_live_run("r2", [3], base=[2], built=False)
    await asked(runtime, provider, queue, ahead, behind)
    assert sum(clock.waits) == building.WAIT_FOR_BUILD_S


async def test_it_waits_for_none_where_the_same_merge_gives_the_same_commit(
    runtime, provider, queue, clock
):
    provider.repeats = True
    ahead = a_live_run("r1", [1, 2], built=False)
    behind = a_live_run("r2", [3, 4], base=[1, 2], built=False)
    await asked(runtime, provider, queue, ahead, behind)
    assert clock.waits == []


@pytest.mark.parametrize(("number", "waits_s"), [(1, building.WAIT_FOR_BUILD_S), (2, 0.0)])
async def test_after_a_conflict_ahead_it_waits_for_the_run_that_tests_that_head(
    runtime, provider, queue, number, waits_s
):
    provider.repeats, provider.conflict = True, Conflicted(number, False, None, ())
    ahead = a_live_run("r1", [1], built=False)
    behind = a_live_run("r2", [2], base=[1], built=False)
    await live(runtime, queue, ahead, behind)
    await building.build(runtime, queue, an_action(behind))
    assert sum(provider.clock.waits) == waits_s


async def test_one_that_is_gone_before_its_message_can_be_written_leaves_the_queue(
    runtime, provider, queue
):
    config = QueueConfig(merge_method=MergeMethod.MERGE_COMMIT)
    run = a_live_run("r1", [1, 2], config=config, built=False)
    entries = {pr: an_entry(pr, run="r1", head=sha_of("head", pr)) for pr in (1, 2)}
    await live(runtime, queue, run, entries=entries)
    provider.gone.add(1)
    await building.build(runtime, queue, an_action(run))
    assert set((await turn.value(runtime, queue.id)).entries) == {2}
    assert provider.requests == []


async def test_it_waits_for_none_that_parts_from_it_or_offers_no_more(
    runtime, provider, queue, clock
):
    built = a_live_run("r1", [1, 2])
    shorter = a_live_run("r2", [1], built=False)
    parting = a_live_run("r3", [1, 5], built=False)
    behind = a_live_run("r4", [3], base=[1, 2], built=False)
    await asked(runtime, provider, queue, built, shorter, parting, behind)
    assert clock.waits == []


async def test_a_new_queue_has_its_first_build_prepared_although_the_provider_is_away(
    runtime, provider, queue
):
    repository = await runtime.store.read(access.repository, queue.repository_id)
    made = await queues.create(runtime, repository, "release", QueueRequest({}), SYSTEM)
    assert (made.queue.branch, provider.prepared[-1]) == ("release", (queue.repo.slug, "release"))


async def test_builds_of_all_queues_are_prepared_after_a_start(runtime, provider, queue):
    provider.prepared.clear()
    await building.prepare_all(runtime)
    assert provider.prepared == [(queue.repo.slug, queue.branch)]


@pytest.mark.parametrize(
    ("branch", "discarded"),
    [
        (None, ["headgate/merge/pr-1/r1", "headgate/temp/pr-1/r1"]),
        ("headgate/merge/pr-1/r1", ["headgate/merge/pr-1/r1"]),
        ("headgate/temp/pr-1/r1", ["headgate/temp/pr-1/r1"]),
    ],
)
async def test_a_run_that_is_retired_while_it_is_built_loses_both_of_its_branches(
    runtime, provider, queue, branch, discarded
):
    run = a_live_run("r1", [1], built=branch is not None, branch=branch)
    run = replace(run, status=RunStatus.CANCELLED, finished_at=runtime.clock.now())
    value = await turn.value(runtime, queue.id)
    over = Step(value, (), (), None, None, finished_runs=(run,))
    await runtime.store.run(lambda session: stored_queues.save(session, value, over))
    await building.retire(runtime, queue, RetireRun("r1", stop_ci=False))
    assert provider.discarded == discarded


def test_a_run_is_named_after_the_first_pull_request_that_it_tests():
    run = a_live_run("r1", [7, 5], base=[3])
    assert naming.test_branch(run) == "headgate/merge/pr-7/r1"
    assert naming.draft_title(run, "main") == "headgate: test pr-7, pr-5 on main"
    assert "`#7`, `#5`" in naming.draft_body(run, "main")


def test_a_title_names_the_first_of_many():
    run = a_live_run("r1", range(1, 401))
    title = naming.draft_title(run, "main")
    assert title.startswith("headgate: test pr-1, pr-2, ")
    assert title.endswith(" and 390 more on main")


class Taken(ValuesProvider):
    """Refuses the name of a branch until the branch that has it is discarded."""

    def __init__(self, code: RefusedCode) -> None:
        super().__init__()
        self.code: RefusedCode | None = code

    async def start_dry_test(self, request: DryTestRequest) -> DryTest:
        if self.code is not None:
            raise Refused("No.", self.code)
        return await super().start_dry_test(request)

    async def discard(self, repo: RepoRef, branch: str) -> None:
        self.code = None


async def test_a_branch_that_an_interrupted_try_has_left_is_replaced_and_no_refusal_else():
    tip = Sha("a" * 40)
    branch, repo = "headgate/temp/tip", ValuesProvider().ref
    ask = DryTestRequest(repo, "main", tip, branch, Vehicle.PUSH, "message", "title", "body")
    taken = Taken(RefusedCode.NAME_TAKEN)
    assert (await building.started_anew(taken, ask)).branch == branch
    with pytest.raises(Refused, match="No"):
        await building.started_anew(Taken(RefusedCode.WORKFLOWS), ask)
