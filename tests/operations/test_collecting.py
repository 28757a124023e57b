"""Reports that CI left are given to whoever takes them in, each once.

See docs/design/reports.md 10.
"""

import pytest

from service.provider.archives import ArchiveFile
from service.provider.errors import Unavailable
from service.testhealth.operations import collecting
from service.testhealth.reports.collecting import class_of
from service.testhealth.reports.uploads import UploadClass
from tests.provider.stage import on_sandbox

PATTERNS = ("*junit*",)
UNIT = "{ name: unit, runner: linux-7, reports: { tests: [ { name: adds } ] } }"
LINT = "{ name: lint, reports: { artifact: lint-log, tests: [ { name: long-line } ] } }"
SLOW = "{ name: slow, seconds: 9, reports: { artifact: junit-all, tests: [ { name: a } ] } }"


class Kept:
    """An intake that keeps what it was given."""

    def __init__(self):
        self.taken = {}
        self.refused = {}

    async def unseen(self, artifact_ids):
        return frozenset(artifact_ids) - self.taken.keys() - self.refused.keys()

    async def take_in(self, collected, files):
        self.taken[collected.artifact.id] = (collected, list(files))

    async def refuse(self, collected, reason):
        self.refused[collected.artifact.id] = reason

    def jobs(self):
        return [collected.job for collected, _ in self.taken.values()]


@pytest.fixture
async def stage():
    async with on_sandbox() as made:
        await made.plan_ci([UNIT, LINT, SLOW])
        yield made


@pytest.fixture
def kept():
    return Kept()


async def collect(stage, kept, run, attempt=1):
    of = (run, attempt)
    return await collecting.collect(stage.provider, stage.repo, of, PATTERNS, kept)


async def test_artifacts_of_wanted_names_are_taken_in_with_what_is_known_of_them(stage, kept):
    run, head = await stage.ran({"a.txt": "a\n"})
    assert await collect(stage, kept, run) == 2
    (unit, files), (slow, _) = kept.taken.values()
    assert (unit.artifact.name, unit.job, unit.machine) == (
        "junit-unit",
        "ci / junit-unit",
        "linux-7",
    )
    assert (slow.job, slow.machine) == ("ci / junit-all", None)
    assert [job.name for job in unit.jobs] == ["unit", "lint", "slow"]
    assert (unit.run.head_sha, unit.ran_at) == (head, unit.run.started_at)
    assert isinstance(files[0], ArchiveFile)
    assert class_of(unit.ran, (), is_of_queue=False) is UploadClass.PR


async def test_what_was_seen_is_not_fetched_again(stage, kept):
    run, _ = await stage.ran({"a.txt": "a\n"})
    await collect(stage, kept, run)
    before = len(stage.calls())
    assert await collect(stage, kept, run) == 0
    assert [call["path"].rpartition("/")[2] for call in stage.calls(before)] == ["artifacts"]


async def test_a_run_that_left_nothing_of_interest_costs_one_read(stage, kept):
    await stage.provider.repository(stage.repo)
    run, _ = await stage.ran({".sandbox/ci.yml": "triggers: { pull_request: true }\nchecks: []\n"})
    before = len(stage.calls())
    assert await collect(stage, kept, run) == 0
    assert len(stage.calls(before)) == 1


async def test_each_attempt_gets_its_own_even_when_it_is_told_late(stage, kept):
    run, _ = await stage.ran({"a.txt": "a\n"})
    await stage.clock.sleep(60)
    stage.fail_jobs(run)
    await stage.run_again(run, failed_only=True)
    assert await collect(stage, kept, run, 1) == 2
    assert {collected.run.attempt for collected, _ in kept.taken.values()} == {1}
    assert await collect(stage, kept, run, 2) == 2
    assert kept.jobs() == ["ci / junit-unit", "ci / junit-all"] * 2
    assert [collected.run.attempt for collected, _ in kept.taken.values()] == [1, 1, 2, 2]


async def test_what_a_fork_left_is_not_trusted(stage, kept):
    run, _ = await stage.ran({"a.txt": "a\n"}, by="dave", fork=True)
    await collect(stage, kept, run)
    for collected, _ in kept.taken.values():
        assert class_of(collected.ran, ("*",), is_of_queue=False) is UploadClass.UNTRUSTED


async def test_what_cannot_be_read_is_refused_once(stage, kept):
    run, _ = await stage.ran({"a.txt": "a\n"})
    stage.replace_archive(run, b"no archive")
    assert await collect(stage, kept, run) == 2
    assert list(kept.refused.values()) == ["It is not a zip archive."]
    assert await collect(stage, kept, run) == 0


async def test_trouble_leaves_the_rest_for_the_next_time(stage, kept):
    run, _ = await stage.ran({"a.txt": "a\n"})
    await stage.fault("fail_before", path="/_storage/*", nth=2, times=1)
    with pytest.raises(Unavailable):
        await collect(stage, kept, run)
    assert kept.jobs() == ["ci / junit-unit"]
    assert await collect(stage, kept, run) == 1
    assert kept.jobs() == ["ci / junit-unit", "ci / junit-all"]


async def test_a_run_that_is_gone_left_nothing(stage, kept):
    assert await collect(stage, kept, "999") == 0
