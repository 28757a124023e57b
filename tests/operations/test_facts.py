"""What a queue takes from a pull request as read: conflicts, checks of heads, and own checks."""

from dataclasses import replace
from typing import Any

import pytest

from service.mergequeue.engine.config import QueueConfig, Toggle
from service.mergequeue.engine.reported import Facts
from service.mergequeue.operations import facts, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.provider.ci import Judged, Subject
from service.provider.values import (
    BuildRequest,
    Checks,
    Commit,
    Conflicted,
    PullRequest,
    Rehearsed,
)
from service.runtime import Runtime
from service.vocabulary import (
    SYSTEM,
    Approval,
    Blocker,
    BlockerCode,
    Check,
    CheckKind,
    CheckOutcome,
    ConflictRule,
    Mergeability,
    MergeMethod,
    QueueRef,
    RepoRef,
    Resolution,
    Sha,
)
from tests.harness.values import sha_of
from tests.operations.test_sweeps import ChangingProvider

HEAD = sha_of("head", 1)
BY_BOB = Approval("bob", "8", HEAD, None)
RULES = (ConflictRule(("CHANGELOG.md",), Resolution.CHANGELOG),)
RULED = QueueConfig(merge_method=MergeMethod.MERGE_COMMIT, conflict_rules=RULES)
DIRECT = QueueConfig(direct_merge_mode=Toggle.ALWAYS)
TITLES = {"required_statuses": ("unit", "title"), "head_only_statuses": ("title",)}


class ReadingProvider(ChangingProvider):
    """Knows the head's commit, what its checks judged, and whether rules resolve a conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.head: Commit | None = Commit(HEAD, sha_of("own tree"), (self.main.sha,))
        self.is_complete = True
        self.subject = Subject.MERGE
        self.rehearsed: Rehearsed | None = None
        self.green.add(HEAD)

    async def commit(self, repo: RepoRef, sha: Sha) -> Commit | None:
        return self.head

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        found = await super().checks(repo, sha, skipped_pass=skipped_pass)
        return replace(found, complete=self.is_complete)

    async def judged(self, repo: RepoRef, pull: PullRequest, checks: Checks) -> tuple[Judged, ...]:
        return tuple(Judged(check, self.subject) for check in checks.items)

    async def rehearse(self, request: BuildRequest) -> Rehearsed | None:
        return self.rehearsed


@pytest.fixture
def provider() -> ReadingProvider:
    return ReadingProvider()


async def read(runtime: Runtime, queue: QueueRef, config: QueueConfig, **changes: object) -> Facts:
    """The facts of pull request 1, in which this is different."""
    pull = await runtime.providers[queue.repo.host].pull_request(queue.repo, 1)
    return await facts.facts_of(runtime, queue, config, replace(pull, **changes))  # type: ignore[arg-type]


async def test_own_checks_of_a_head_that_contains_the_tip_count(
    runtime: Runtime, queue: QueueRef, provider: ReadingProvider
):
    found = await read(runtime, queue, DIRECT)
    assert (found.contains_tip, found.head_tree) == (provider.main.sha, sha_of("own tree"))
    assert [check.name for check in found.own_checks] == ["unit"]


@pytest.mark.parametrize("is_green", [True, False])
async def test_a_check_that_passed_on_another_base_is_left_out(
    runtime: Runtime, queue: QueueRef, provider: ReadingProvider, is_green: bool
):
    provider.subject = Subject.UNKNOWN
    if not is_green:
        provider.green.clear()
    found = await read(runtime, queue, DIRECT)
    assert [check.name for check in found.own_checks] == ([] if is_green else ["unit"])


@pytest.mark.parametrize(
    ("known", "changes"),
    [
        ({"line": [HEAD, sha_of("main")]}, {}),
        ({"head": None}, {}),
        ({"is_complete": False}, {}),
        ({}, {"base_tip": None}),
    ],
    ids=["the target has moved", "the head is gone", "checks are missing", "no target"],
)
async def test_own_checks_count_only_where_all_of_it_was_read(
    runtime: Runtime,
    queue: QueueRef,
    provider: ReadingProvider,
    known: dict[str, Any],
    changes: dict[str, Any],
):
    for name, value in known.items():
        setattr(provider, name, value)
    found = await read(runtime, queue, DIRECT, **changes)
    assert (found.contains_tip, found.head_tree, found.own_checks) == (None, None, ())


@pytest.mark.parametrize(
    ("rehearsed", "conflicts"),
    [
        (None, True),
        (Rehearsed(Conflicted(1, True, None, ("app.py",))), True),
        (Rehearsed(None), False),
    ],
)
async def test_only_a_conflict_that_rules_resolve_is_none(
    runtime: Runtime,
    queue: QueueRef,
    provider: ReadingProvider,
    rehearsed: Rehearsed | None,
    conflicts: bool,
):
    provider.rehearsed = rehearsed
    draft = Blocker(BlockerCode.CHANGES_REQUESTED)
    blockers = (Blocker(BlockerCode.CONFLICT), draft)
    changes = {"mergeability": Mergeability.NOT_MERGEABLE, "blockers": blockers}
    found = await read(runtime, queue, RULED, **changes)
    assert (found.mergeability is Mergeability.NOT_MERGEABLE) is conflicts
    assert found.blockers == (blockers if conflicts else (draft,))


@pytest.mark.parametrize(
    ("outcome", "skips_pass", "expected"),
    [
        (CheckOutcome.PASSED, False, None),
        (CheckOutcome.SKIPPED, True, None),
        (CheckOutcome.SKIPPED, False, BlockerCode.CHECK_FAILING),
        (CheckOutcome.FAILED, True, BlockerCode.CHECK_FAILING),
        (CheckOutcome.RUNNING, True, BlockerCode.CHECK_PENDING),
        (None, True, BlockerCode.CHECK_PENDING),
    ],
)
async def test_what_only_heads_must_pass_blocks_a_head_that_has_not(
    runtime: Runtime,
    queue: QueueRef,
    outcome: CheckOutcome | None,
    skips_pass: bool,
    expected: BlockerCode | None,
):
    await queues.update(runtime, queue, QueueRequest(dict(TITLES)), SYSTEM)
    config = (await turn.value(runtime, queue.id)).config
    config = replace(config, skipped_statuses_pass=skips_pass)
    reports: tuple[Check, ...] = ()
    if outcome is not None:
        reports = (Check(CheckKind.SUITE_RUN, "title", "7", "1", "1", outcome, outcome, ""),)
    found = await read(runtime, queue, config, own_reports=reports)
    assert found.blockers == (() if expected is None else (Blocker(expected, "title"),))


async def test_a_check_that_the_provider_wants_too_blocks_once(runtime: Runtime, queue: QueueRef):
    await queues.update(runtime, queue, QueueRequest(dict(TITLES)), SYSTEM)
    config = (await turn.value(runtime, queue.id)).config
    wanted = (Blocker(BlockerCode.CHECK_FAILING, "title"),)
    assert (await read(runtime, queue, config, blockers=wanted)).blockers == wanted


@pytest.mark.parametrize("fresh", Mergeability)
@pytest.mark.parametrize("is_pushed", [False, True])
async def test_a_sweep_tells_of_a_conflict_and_keeps_what_it_did_not_await(
    runtime: Runtime, queue: QueueRef, fresh: Mergeability, is_pushed: bool
):
    known = await read(runtime, queue, QueueConfig())
    seen = replace(known, mergeability=fresh, head=sha_of("pushed") if is_pushed else HEAD)
    is_kept = fresh is Mergeability.IN_PROGRESS and not is_pushed
    assert facts.swept(known, seen).mergeability is (known if is_kept else seen).mergeability


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("is_pushed", [False, True])
async def test_a_sweep_keeps_the_approvals_of_a_head_that_it_does_not_read(
    runtime: Runtime, queue: QueueRef, is_read: bool, is_pushed: bool
):
    known = replace(await read(runtime, queue, QueueConfig()), approvals=(BY_BOB,))
    fresh = replace(
        known, approvals=() if is_read else None, head=sha_of("pushed") if is_pushed else HEAD
    )
    is_kept = not is_read and not is_pushed
    assert facts.swept(known, fresh).approvals == (known if is_kept else fresh).approvals
