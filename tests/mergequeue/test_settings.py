"""A setting has one value from three sources: the repository's file, the queue, the default."""

from dataclasses import replace

import pytest

from service.mergequeue.engine import engine
from service.mergequeue.engine.applying import settings
from service.mergequeue.engine.config import ConfigValue, Mode, SettingSource
from service.mergequeue.engine.inputs import Configure, Input, RepositoryFileRead, Submit
from service.mergequeue.engine.model import FileFault, MergeQueue, RepositoryFile
from service.mergequeue.engine.outputs import QueueConfigured
from service.mergequeue.engine.states import QueueState
from service.vocabulary import SYSTEM, MergeMethod, Sha
from tests.mergequeue import stage

FAULT = FileFault(".github/headgate.yml", 4, "queues.main.batch", "It is wrong.")


def a_file(*names: str, digest: str = "1", faults: tuple[FileFault, ...] = ()) -> RepositoryFile:
    return RepositoryFile(Sha("c" * 40), digest, names, None, faults)


def reading(reason: str | None = None, **given: ConfigValue) -> RepositoryFileRead:
    file = a_file(*sorted(given), digest=repr(given)) if given else None
    return RepositoryFileRead(file, given, reason)


def after(queue: MergeQueue, *inputs: Input) -> MergeQueue:
    for one in inputs:
        queue = engine.step(queue, one, stage.START).queue
    return queue


def setting(reason: str | None = None, **changes: ConfigValue) -> Configure:
    return Configure(changes, stage.ALICE, reason)


def test_the_file_goes_before_the_queue_and_the_queue_before_the_default():
    queue = after(stage.a_queue(), setting(concurrency=5, batch=True), reading(concurrency=3))
    assert (queue.config.concurrency, queue.config.batch) == (3, True)
    found = settings.sources(queue)
    assert found["concurrency"] is SettingSource.FILE
    assert found["batch"] is SettingSource.API
    assert found["hedging"] is SettingSource.DEFAULT


def test_a_setting_that_the_file_drops_gets_its_own_value_back():
    queue = after(stage.a_queue(), setting(concurrency=5), reading(concurrency=3, batch=True))
    queue = after(queue, setting(auto_retry_limit=2), reading(batch=True))
    assert (queue.config.concurrency, queue.config.batch) == (5, True)
    queue = after(queue, reading())
    assert (queue.config.batch, queue.config.auto_retry_limit) == (False, 2)
    assert (queue.own_config, queue.file) == (None, None)


def test_a_person_cannot_change_what_the_file_sets():
    queue = after(stage.a_queue(), reading(concurrency=3))
    step = engine.step(queue, setting(concurrency=9, batch=True), stage.START)
    assert step.queue == queue
    assert step.refusal is not None
    assert step.refusal.field == "concurrency"


def test_the_service_itself_can_leave_draft_pull_requests():
    queue = after(stage.a_queue(), reading("By the file.", create_prs_for_testing_branches=True))
    own = Configure({"create_prs_for_testing_branches": False}, SYSTEM, "Refused.")
    queue = after(queue, own)
    assert queue.config.create_prs_for_testing_branches is False
    assert (queue.test_branch_reason, queue.chosen) == ("Refused.", ())


def test_a_file_with_faults_changes_its_faults_alone():
    queue = after(stage.a_queue(), reading(concurrency=3))
    assert queue.file is not None
    broken = replace(queue.file, digest="2", faults=(FAULT,))
    step = engine.step(queue, RepositoryFileRead(broken, None), stage.START)
    assert step.queue == replace(queue, file=broken)
    assert [each.event for each in step.events] == [QueueConfigured(("repository_file",))]


def test_no_override_of_required_statuses_is_not_chosen():
    queue = after(stage.a_queue(), setting(required_statuses=("unit",)))
    assert queue.chosen == ("required_statuses",)
    assert after(queue, setting(required_statuses=None)).chosen == ()


def test_the_mode_of_the_file_waits_for_the_runs_of_the_old_one():
    queue = after(stage.a_queue(), Submit(stage.facts_of(1), stage.ALICE))
    queue = after(queue, reading(mode=Mode.PARALLEL))
    assert (queue.config.mode, queue.target_mode) == (Mode.SINGLE, Mode.PARALLEL)
    assert queue.state is QueueState.SWITCHING_MODES
    queue = after(queue, reading())
    assert (queue.config.mode, queue.target_mode) == (Mode.SINGLE, None)


def test_a_switch_that_the_queue_began_outlasts_a_file_that_comes_and_goes():
    queue = after(stage.a_queue(), Submit(stage.facts_of(1), stage.ALICE))
    queue = after(queue, setting(mode=Mode.PARALLEL), reading(batch=True), reading())
    assert queue.target_mode is Mode.PARALLEL


@pytest.mark.parametrize("one", [setting(batch=True), reading(batch=True)], ids=["API", "FILE"])
def test_the_same_settings_again_change_nothing(one):
    queue = after(stage.a_queue(), one)
    step = engine.step(queue, one, stage.START)
    assert (step.queue, step.events) == (queue, ())


def test_a_merge_method_of_the_file_is_told_to_those_who_wait():
    queue = after(stage.a_queue(), Submit(stage.facts_of(1), stage.ALICE))
    queue = after(queue, reading(merge_method=MergeMethod.REBASE))
    assert queue.config.merge_method is MergeMethod.REBASE
