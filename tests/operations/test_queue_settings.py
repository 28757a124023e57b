"""Settings and state of a queue: what is taken, and what is refused with a reason."""

from dataclasses import replace
from typing import Any

import pytest

from service.accounts import repositories
from service.errors import Invalid, Malformed
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues, turn, vehicles
from service.mergequeue.operations.queues import QueueRequest
from service.provider.values import Commit, Vehicle, VehicleAdvice
from service.runtime import Runtime
from service.vocabulary import (
    SYSTEM,
    ConflictRule,
    MergeMethod,
    QueueRef,
    RepoRef,
    Resolution,
    Sha,
)
from tests.harness.values import ValuesProvider

RULES = {"conflict_rules": (ConflictRule(("CHANGELOG.md",), Resolution.UNION),)}
SQUASH = {"merge_method": MergeMethod.SQUASH}
MERGE = {"merge_method": MergeMethod.MERGE_COMMIT}
TESTED = {"land_tested_commits": True}


class Advised(ValuesProvider):
    """Its workflows start on pushes to test branches; its branch may be gone."""

    def __init__(self) -> None:
        super().__init__()
        self.is_gone = False

    async def vehicle_advice(self, repo: RepoRef, branch: str, commit: Sha) -> VehicleAdvice:
        return VehicleAdvice(Vehicle.PUSH, "CI starts on pushes.")

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        return None if self.is_gone else await super().tip(repo, branch)


@pytest.fixture
def provider() -> Advised:
    """Instead of the provider without workflows."""
    return Advised()


async def update(runtime: Runtime, queue: QueueRef, **settings: Any) -> None:
    await queues.update(runtime, queue, QueueRequest(settings), SYSTEM)


@pytest.mark.parametrize("state", [None, QueueState.PAUSED, QueueState.DRAINING])
async def test_a_new_queue_runs_unless_another_state_is_asked_for(
    runtime: Runtime, provider: Advised, state: QueueState | None
) -> None:
    record = await runtime.store.run(repositories.upsert, await provider.repository(provider.ref))
    made = await queues.create(runtime, record, "line", QueueRequest({}, state), SYSTEM)
    value = await turn.value(runtime, made.queue.id)
    assert value.state is (state or QueueState.RUNNING)


@pytest.mark.parametrize(
    ("allowed", "names"),
    [
        ({MergeMethod.REBASE, MergeMethod.MERGE_COMMIT}, "MERGE_COMMIT, REBASE"),
        (set(), "none"),
    ],
)
async def test_another_merge_method_is_one_that_the_repository_allows(
    runtime: Runtime, queue: QueueRef, provider: Advised, allowed: set[MergeMethod], names: str
) -> None:
    await update(runtime, queue, **MERGE)
    fresh = await provider.repository(provider.ref)
    await runtime.store.run(repositories.upsert, replace(fresh, merge_methods=frozenset(allowed)))
    with pytest.raises(Invalid, match=f"does not allow SQUASH; allowed: {names}.") as refused:
        await update(runtime, queue, **SQUASH)
    assert refused.value.code == "merge_method_not_allowed"
    await update(runtime, queue, **MERGE)


@pytest.mark.parametrize(
    ("before", "settings"),
    [
        (SQUASH, RULES),
        (MERGE | RULES, SQUASH),
        (SQUASH | TESTED | RULES, {"land_tested_commits": False}),
    ],
)
async def test_rules_for_conflicts_need_a_landing_of_the_tested_merge(
    runtime: Runtime, queue: QueueRef, before: dict[str, Any], settings: dict[str, Any]
) -> None:
    await update(runtime, queue, **before)
    with pytest.raises(Malformed, match="conflictRules"):
        await update(runtime, queue, **settings)
    await update(runtime, queue, concurrency=3)


async def test_a_reason_alone_is_one_for_the_present_state(
    runtime: Runtime, queue: QueueRef
) -> None:
    await queues.update(runtime, queue, QueueRequest({}, reason="a release"), SYSTEM)
    value = await turn.value(runtime, queue.id)
    assert (value.state, value.state_reason) == (QueueState.PAUSED, "a release")
    await queues.update(runtime, queue, QueueRequest({}, QueueState.RUNNING), SYSTEM)
    assert (await turn.value(runtime, queue.id)).state is QueueState.RUNNING


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_kind_of_test_branch_that_is_set_says_what_workflows_need(
    runtime: Runtime, queue: QueueRef, provider: Advised, is_gone: bool
) -> None:
    provider.is_gone = is_gone
    await update(runtime, queue, **{vehicles.SETTING: True})
    reason = (await turn.value(runtime, queue.id)).test_branch_reason
    advice = "" if is_gone else " But CI starts on pushes."
    assert reason == f"{vehicles.BY_SETTING}{advice}"
