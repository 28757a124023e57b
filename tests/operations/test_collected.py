"""Reports that CI left as artifacts become uploads, in a lane of their own.

See docs/design/reports.md 10.
"""

import io
import zipfile
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.accounts import repositories
from service.database import outbox
from service.database.claims import ClaimedRows
from service.database.outbox import Lane, OutboxState
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import pull_requests
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.pull_requests import PullRequestHead
from service.parser_process import Limits
from service.process import effects, signals
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provider.errors import Unavailable
from service.provider.signals import CiRunEnded, Where
from service.testhealth.operations import collected, ingest, parsing
from service.testhealth.operations.parsing import SentFile
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports.collecting import CollectReports
from service.testhealth.reports.results import FileStatus
from service.testhealth.settings import TestSettings
from service.testhealth.store import quarantine
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import Since
from service.testhealth.store.uploads import UPLOAD, uploads
from service.vocabulary import SYSTEM, Sha
from tests.operations import upload_stage
from tests.provider.stage import HOST, on_sandbox

ADDS = "{ name: adds, rules: [ { exists: [bad.txt], conclusion: failure } ] }"
SLOW = "{ name: slow, seconds: 9, reports: { artifact: junit-all, tests: [ { name: a } ] } }"
LINT = "{ name: lint, reports: { artifact: lint-log, tests: [ { name: long-line } ] } }"
UNIT = f"{{ name: unit, runner: linux-7, reports: {{ tests: [ {ADDS}, {{ name: divides }} ] }} }}"
GOOD = "<testsuite><testcase classname='c' name='adds'/></testsuite>"
SECOND = timedelta(seconds=1)


class Yard:
    """A repository at the sandbox whose CI we hear of; `ended` is the news of a run."""

    def __init__(self, stage, runtime, repository, caller):
        self.stage, self.runtime, self.repository, self.caller = stage, runtime, repository, caller
        self.tested = upload_stage.Stage(runtime, stage.clock, repository, caller)
        self.collecting = Flow(runtime, flows.COLLECTING)

    async def ended(self, run, attempt=1, branch="main"):
        fresh = await self.stage.provider.repository(self.stage.repo)
        signal = CiRunEnded(Where(fresh.id, fresh.ref), run, attempt, branch)
        await signals.receive(self.runtime, signal, self.runtime.clock.now())

    async def collected(self, run, attempt=1):
        """The uploads there are once the run was looked at."""
        await self.ended(run, attempt)
        await self.collecting.drain()
        return await self.uploads()

    async def fetch(self, run, attempt=1):
        await collected.fetch(self.runtime, self.repository.id, CollectReports(run, attempt))

    async def uploads(self):
        return await self.runtime.store.read(_uploads)

    async def effects(self):
        """State and number of tries of each effect to collect."""
        return await self.runtime.store.read(_effects)

    async def pushed(self, files):
        """A push to `main` whose CI has ended: that run, and the commit."""
        pushed = await self.stage.act("push", branch="main", files=files, message="m", bypass=True)
        await self.stage.settle()
        return self.stage.ci_run(pushed["sha"]), pushed["sha"]

    async def tests(self):
        """Name of each known test → whether it has failed."""
        found = await self.tested.cases()
        return {name: case.last_failed_at is not None for name, case in found.items()}

    async def put(self, settings):
        place = Place(self.repository.org_id, self.repository.id)
        await self.runtime.store.run(quarantine.put_settings, place, settings, Since())


def _uploads(session):
    rows = session.execute(select(*UPLOAD.columns).order_by(uploads.c.received_at, uploads.c.id))
    return [UPLOAD.value(row) for row in rows]


def _effects(session):
    table = OutboxRow.__table__
    rows = session.execute(select(table.c.state, table.c.attempts).order_by(table.c.id))
    return [(OutboxState(row.state), row.attempts) for row in rows]


@pytest.fixture
async def yard(store):
    async with on_sandbox() as stage:
        made = await upload_stage.staged(store)
        runtime = replace(made.runtime, providers={HOST: stage.provider}, clock=stage.clock)
        fresh = await stage.provider.repository(stage.repo)
        repository = await store.run(repositories.upsert, fresh)
        await stage.plan_ci([UNIT])
        yield Yard(stage, runtime, repository, made.caller)


def a_zip(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


async def test_a_push_is_evidence_of_its_branch(yard):
    run, head = await yard.pushed({"a.txt": "a\n"})
    (upload,) = await yard.collected(run)
    tree = yard.stage.git("rev-parse", f"{head}^{{tree}}").strip()
    assert (upload.kind, upload.branch, upload.sha) == ("stable", "main", head)
    assert (upload.code_id, upload.job, upload.machine) == (
        f"tree:{tree}",
        "ci / junit-unit",
        "linux-7",
    )
    assert (upload.run_id, upload.run_attempt, upload.counts["passed"]) == (run, 1, 2)
    assert upload.is_eligible
    assert await yard.tests() == {"adds": False, "divides": False}


async def test_each_attempt_is_an_upload_of_the_same_code(yard):
    run, _ = await yard.pushed({"bad.txt": "x\n"})
    await yard.collected(run)
    await yard.stage.clock.sleep(60)
    await yard.stage.run_again(run)
    yard.stage.replace_archive(run, a_zip({"junit.xml": GOOD}))
    first, second = await yard.collected(run, 2)
    assert (first.run_attempt, second.run_attempt) == (1, 2)
    assert (first.counts["failed"], second.counts["failed"]) == (1, 0)
    assert (first.code_id, first.job) == (second.code_id, second.job)


async def test_artifacts_of_wanted_names_are_taken_in_with_the_machine_of_their_job(yard):
    await yard.stage.plan_ci([UNIT, LINT, SLOW])
    run, head = await yard.pushed({"a.txt": "a\n"})
    assert {(each.job, each.machine, each.sha) for each in await yard.collected(run)} == {
        ("ci / junit-unit", "linux-7", head),
        ("ci / junit-all", None, head),
    }


async def test_artifacts_taken_in_before_are_not_fetched_again(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.fetch(run)
    before = len(yard.stage.calls())
    await yard.fetch(run)
    paths = [call["path"].rpartition("/")[2] for call in yard.stage.calls(before)]
    assert (paths, len(await yard.uploads())) == (["artifacts"], 1)


async def test_a_run_that_left_nothing_of_interest_costs_one_read(yard):
    run, _ = await yard.pushed({".sandbox/ci.yml": "triggers: { push: true }\nchecks: []\n"})
    before = len(yard.stage.calls())
    await yard.fetch(run)
    assert (len(yard.stage.calls(before)), await yard.uploads()) == (1, [])


async def test_each_attempt_gets_its_own_artifacts_even_when_it_is_fetched_late(yard):
    await yard.stage.plan_ci([UNIT, SLOW])
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.stage.clock.sleep(60)
    yard.stage.fail_jobs(run)
    await yard.stage.run_again(run, failed_only=True)
    for attempt in (1, 2):
        await yard.fetch(run, attempt)
        await yard.stage.clock.sleep(1)
    jobs = ["ci / junit-all", "ci / junit-unit"]
    for attempt in (1, 2):
        uploads = [each for each in await yard.uploads() if each.run_attempt == attempt]
        assert sorted(each.job for each in uploads) == jobs


async def test_an_artifact_that_cannot_be_fetched_leaves_the_rest_for_the_next_time(yard):
    await yard.stage.plan_ci([UNIT, SLOW])
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.stage.fault("fail_before", path="/_storage/*", nth=2, times=1)
    with pytest.raises(Unavailable):
        await yard.fetch(run)
    assert [each.job for each in await yard.uploads()] == ["ci / junit-unit"]
    await yard.fetch(run)
    assert {each.job for each in await yard.uploads()} == {"ci / junit-unit", "ci / junit-all"}


async def test_a_run_that_does_not_exist_any_more_left_nothing(yard):
    await yard.fetch("999")
    assert await yard.uploads() == []


async def test_a_pull_request_is_judged_by_its_run_and_counted_for_it(yard):
    number, head = await yard.stage.open({"bad.txt": "x\n"})
    run = yard.stage.ci_run(head)
    (upload,) = await yard.collected(run)
    assert (upload.kind, upload.prs, upload.pr_number) == ("pr", (number,), number)
    assert upload.code_id == f"run:{run}"
    assert await yard.tests() == {"adds": True, "divides": False}


async def test_a_fork_changes_nothing_but_is_kept(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.collected(run)
    before = await yard.tested.cases()
    number, head = await yard.stage.open({"bad.txt": "x\n"}, by="dave", fork=True)
    seen = PullRequestHead(yard.repository.id, number, head)
    await yard.runtime.store.run(pull_requests.remember_head, seen, None, yard.runtime.clock.now())
    _, upload = await yard.collected(yard.stage.ci_run(head))
    assert (upload.kind, upload.is_eligible, upload.prs) == ("untrusted", False, (number,))
    assert upload.counts["failed"] == 1
    after = await yard.tested.cases()
    # A known test hits one more pull request, and that is all.
    assert after["adds"].impact == 1
    assert as_judged(after) == as_judged(before)


def as_judged(cases):
    """Tests but for the pull requests that they failed for."""
    return {name: case._replace(impact=0) for name, case in cases.items()}


async def test_tests_that_a_fork_alone_has_are_known_to_nobody(yard):
    _, head = await yard.stage.open({"bad.txt": "x\n"}, by="dave", fork=True)
    await yard.collected(yard.stage.ci_run(head))
    assert await yard.tests() == {}


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"no archive", "It is not a zip archive."),
        (a_zip({"bomb.xml": b"0" * 9_000_000}), "No file could be read as a report of tests."),
        (a_zip({"package.json": b"{}"}), "It holds no report of tests."),
    ],
)
async def test_what_cannot_be_read_is_refused_once_and_says_why(yard, packed, reason):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    yard.stage.replace_archive(run, packed)
    (upload,) = await yard.collected(run)
    assert (upload.refusal, upload.kind, upload.is_eligible) == (reason, "stable", False)
    assert [file.status for file in upload.files] == [FileStatus.REFUSED]
    assert await yard.tests() == {}
    answer = await ingest.upload_answer(yard.runtime, yard.repository, upload.id)
    assert answer.warnings == (reason,)
    await yard.fetch(run)
    assert len(await yard.uploads()) == 1


async def test_a_bomb_spoils_no_other_report_of_its_archive(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    files = {"bomb.xml": b"0" * 9_000_000, "good.xml": GOOD, "package.json": b"{}"}
    yard.stage.replace_archive(run, a_zip(files))
    (upload,) = await yard.collected(run)
    assert sorted((file.name, file.status.value) for file in upload.files) == [
        ("bomb.xml", "refused"),
        ("good.xml", "accepted"),
    ]
    assert (upload.is_partial, upload.is_eligible) == (True, True)


async def test_large_reports_are_read_in_portions(yard, monkeypatch):
    monkeypatch.setattr(parsing, "PORTION_BYTES", 1)
    run, _ = await yard.pushed({"a.txt": "a\n"})
    files = {f"{n}.xml": GOOD.replace("adds", f"adds {n}") for n in range(3)}
    yard.stage.replace_archive(run, a_zip(files))
    (upload,) = await yard.collected(run)
    assert upload.counts["tests"] == 3


async def test_an_archive_that_takes_too_much_is_one_refused_upload(yard, monkeypatch):
    monkeypatch.setattr(parsing, "LIMITS", Limits(computing_s=20, memory_bytes=32 << 20))
    run, _ = await yard.pushed({"a.txt": "a\n"})
    cases = "".join(f"<testcase name='{n}'/>" for n in range(100_000))
    yard.stage.replace_archive(run, a_zip({"a.xml": f"<testsuite>{cases}</testsuite>"}))
    (upload,) = await yard.collected(run)
    assert "took more than 32 MiB of memory" in upload.refusal
    assert await yard.effects() == [(OutboxState.DONE, 1)]


async def test_news_that_come_twice_are_one_upload(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.collected(run)
    assert len(await yard.collected(run)) == 1
    assert await yard.effects() == [(OutboxState.DONE, 1)]


async def test_what_ci_has_sent_itself_is_a_duplicate_under_whatever_job(yard):
    run, head = await yard.pushed({"a.txt": "a\n"})
    await sent_already(yard, run, head)
    assert [upload.job for upload in await yard.collected(run)] == ["another job"]
    await yard.fetch(run)
    assert len(await yard.uploads()) == 1


async def test_what_was_collected_and_then_comes_from_ci_itself_counts_once(yard):
    run, head = await yard.pushed({"a.txt": "a\n"})
    (first,) = await yard.collected(run)
    answer = await sent_already(yard, run, head)
    assert (answer.duplicate, answer.upload_id) == (True, first.id)
    assert len(await yard.uploads()) == 1


async def test_jobs_of_one_run_that_send_the_same_report_count_each(yard):
    run, head = await yard.pushed({"a.txt": "a\n"})
    await sent_already(yard, run, head)
    again = await sent_already(yard, run, head, job="a third job")
    assert not again.duplicate


async def test_the_same_file_of_another_run_is_no_duplicate(yard):
    run, head = await yard.pushed({"a.txt": "a\n"})
    await sent_already(yard, "77", head)
    assert len(await yard.collected(run)) == 2


async def test_what_nobody_trusts_hides_nothing(yard):
    run, head = await yard.pushed({"a.txt": "a\n"})
    await sent_already(yard, run, head, caller=replace(yard.caller, token_id=""))
    assert [each.kind for each in await yard.collected(run)] == ["untrusted", "stable"]


async def sent_already(yard, run, head, **by):
    """CI has uploaded the report of the run's only artifact, under a job of its own."""
    packed = yard.stage.packed(yard.stage.ci_run(head))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        sent = [SentFile(name, archive.read(name)) for name in archive.namelist()]
    job = by.get("job", "another job")
    meta = UploadMeta(sha=Sha(head), branch="main", run_id=run, job=job)
    read = await parsing.read_files(yard.runtime, yard.repository, meta, sent)
    caller = by.get("caller", yard.caller)
    answer = await ingest.ingest_upload(yard.runtime, caller, yard.repository, meta, read)
    await yard.stage.clock.sleep(1)
    return answer


@pytest.mark.parametrize(
    "settings",
    [TestSettings(collect_artifacts=False), TestSettings(artifact_patterns=("reports-*",))],
)
async def test_settings_say_what_is_collected(yard, settings):
    await yard.put(settings)
    run, _ = await yard.pushed({"a.txt": "a\n"})
    assert await yard.collected(run) == []


async def test_settings_of_the_moment_of_fetching_count(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.ended(run)
    await yard.put(TestSettings(collect_artifacts=False))
    await yard.collecting.drain()
    assert await yard.uploads() == []


async def test_a_provider_that_is_away_is_asked_again_without_end(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.stage.fault("fail_before", path="/_storage/*", times=1)
    assert await yard.collected(run) == []
    ((state, tries),) = await yard.effects()
    assert (state, tries) == (OutboxState.READY, 1)
    await yard.stage.clock.sleep(3600)
    await yard.collecting.drain()
    assert len(await yard.uploads()) == 1


async def test_readers_that_are_busy_are_waited_for(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    repo, clock = yard.repository.ref, yard.stage.clock
    async with yard.runtime.parsers.place(repo, clock), yard.runtime.parsers.place(repo, clock):
        assert await yard.collected(run) == []
        assert await yard.effects() == [(OutboxState.READY, 1)]
    await yard.stage.clock.sleep(60)
    await yard.collecting.drain()
    assert len(await yard.uploads()) == 1


async def test_a_right_that_is_missing_holds_no_queue(yard):
    wish = QueueRequest({}, QueueState.PAUSED)
    await queues.create(yard.runtime, yard.repository, "main", wish, SYSTEM)
    (queue,) = await yard.runtime.store.read(stored_queues.all_queues)
    before = (await turn.value(yard.runtime, queue.id)).holds
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.stage.permit(actions="none")
    await yard.stage.clock.sleep(2 * 3600)
    assert await yard.collected(run) == []
    assert await yard.effects() == [(OutboxState.READY, 1)]
    assert (await turn.value(yard.runtime, queue.id)).holds == before


async def test_reports_of_a_test_branch_do_not_wait_for_others(yard):
    await yard.ended("7", branch="topic")
    await yard.ended("8", branch=f"headgate/merge/pr-3/{yard.runtime.ids.uuid()}")
    (row,) = (await effects.claim(yard.runtime, 4, lanes=(Lane.REPORTS,))).rows
    assert row.effect == CollectReports("8", 1, is_awaited=True)
    (row,) = (await effects.claim(yard.runtime, 4, lanes=(Lane.COLLECT,))).rows
    assert row.effect == CollectReports("7", 1)


async def test_the_lane_of_queues_does_not_wait_for_it(yard):
    run, _ = await yard.pushed({"a.txt": "a\n"})
    await yard.ended(run)
    claimed = await effects.claim(yard.runtime, 32, lanes=outbox.ACTING)
    assert claimed == ClaimedRows((), None, is_behind=False)
    (row,) = (await effects.claim(yard.runtime, 4, lanes=(Lane.COLLECT,))).rows
    assert (row.lane, row.effect) == (Lane.COLLECT, CollectReports(run, 1))
    await yard.runtime.store.run(outbox.retry, row, yard.runtime.clock.now() + SECOND, "x")
    later = await effects.claim(yard.runtime, 4, lanes=(Lane.COLLECT,))
    assert later.rows == ()
    assert later.next_due is not None
