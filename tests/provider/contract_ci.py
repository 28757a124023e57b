"""What every provider tells of runs of its CI, and what is read of what they left."""

from datetime import timedelta

import pytest

from service.provider import archives
from service.provider.archives import Archive, ArchiveFile, NoArchive, RefusedFile
from service.provider.ci import CiRun, CiTrigger, PullRequestSource, Subject
from service.provider.errors import Gone, GoneKind, Unavailable
from service.vocabulary import CheckOutcome, RepoRef

REPORTED = """
  { name: unit, seconds: 3, runner: linux-7, failed_steps: 2, reports: { files: [app.py, a.xml],
    tests: [ { name: adds },
      { name: waits, rules: [ { exists: [bad.txt], conclusion: failure } ] } ]
  } }""".replace("\n", " ")


STEPPED = """
  { name: unit, steps: [
    { name: Build, seconds: 3, continue-on-error: true,
      rules: [ { exists: [bad.txt], conclusion: failure } ] },
    { name: Tests, seconds: 7, rules: [ { exists: [bad.txt], conclusion: failure } ] },
    { name: Pack, seconds: 20 },
    { name: Tidy, seconds: 20, if: always() } ] }""".replace("\n", " ")
WORKFLOW = "on: push\njobs: {unit: {steps: [{run: make}]}}\n"


async def content(stage, artifact):
    """What is found in an artifact: its files, or why there are none."""
    async with stage.provider.ci_artifact(stage.repo, artifact) as packed:
        found = packed if isinstance(packed, NoArchive) else archives.read(packed)
        return list(found.files()) if isinstance(found, Archive) else found


async def only_artifact(stage, run):
    (artifact,) = await stage.provider.ci_artifacts(stage.repo, run)
    return artifact


RETARGET = ("retarget", {"base": "dev"})
BACK = ("retarget", {"base": "main"})
RUN_AGAIN: tuple[str, dict[str, object]] = ("run again", {})
MOVE = ("push", {"branch": "main", "files": {"c.txt": "c"}})
REWRITE: tuple[str, dict[str, object]] = ("rewrite", {})
PUSH = ("push", {"files": {"b.txt": "b"}})


async def judged(stage, pull):
    """Return the reports on the head of a pull request with what they have judged."""
    checks = await stage.provider.checks(stage.repo, pull.head_sha, skipped_pass=True)
    before = len(stage.calls())
    found = await stage.provider.judged(stage.repo, pull, checks)
    assert len(stage.calls()) - before <= 2
    assert [one.check for one in found] == list(checks.items)
    return found


class Ci:
    """Runs, their jobs, their artifacts."""

    async def test_a_run_is_told_in_full(self, stage):
        begun = stage.clock.now()
        number, head = await stage.open({"a.txt": "a\n"})
        run = stage.ci_run(head)
        found = await stage.provider.ci_run(stage.repo, run)
        assert begun <= found.started_at <= begun + timedelta(seconds=2)
        assert found == CiRun(
            id=run,
            attempt=1,
            trigger=CiTrigger.PULL_REQUEST,
            head_sha=head,
            head_branch=f"topic-{number}",
            of_fork=False,
            pull_requests=(number,),
            is_running=False,
            outcome=CheckOutcome.PASSED,
            started_at=found.started_at,
            url=found.url,
            head_repo=found.head_repo,
            begun_by=found.begun_by,
        )
        assert found.begun_by
        source = await stage.provider.claimed_source(stage.repo, number)
        assert source == PullRequestSource(
            number, found.head_repo, f"topic-{number}", head, is_fork=False
        )
        assert await stage.provider.claimed_run(stage.repo, run) == found
        assert await stage.provider.claimed_run(stage.repo, "1") is None
        assert await stage.provider.claimed_source(stage.repo, 9999) is None
        assert found.url.startswith("http")

    async def test_a_run_of_a_push_tests_its_head(self, stage):
        pushed = await stage.act("push", branch="main", files={"a.txt": "a\n"}, bypass=True)
        run = await stage.provider.ci_run(stage.repo, stage.ci_run(pushed["sha"]))
        assert (run.trigger, run.head_branch) == (CiTrigger.HEAD, "main")
        assert (run.is_running, run.outcome) == (True, CheckOutcome.RUNNING)

    async def test_suites_that_a_pull_request_began_are_known(self, stage):
        pushed = await stage.act("push", branch="main", files={"a.txt": "a\n"}, bypass=True)
        opened = await stage.act("open", by="dave", files={"a.txt": "a\n"}, fork=True)
        await stage.settle()
        for sha, is_of_pull in ((pushed["sha"], False), (opened["head"], True)):
            checks = await stage.provider.checks(stage.repo, sha, skipped_pass=True)
            groups = {check.group for check in checks.items}
            found = await stage.provider.pull_request_suites(stage.repo, sha)
            assert set(found) == (groups if is_of_pull else set())

    async def test_suites_of_other_heads_on_a_commit_of_a_queue_are_known(self, stage):
        pushed = await stage.act("push", branch="main", files={"a.txt": "a\n"}, bypass=True)
        own = "headgate/merge/pr-1"
        tested = await stage.act("open", head=own, files={"b.txt": "b\n"})
        strange = await stage.act("open", by="dave", files={"a.txt": "a\n"}, fork=True, head=own)
        await stage.settle()
        for sha, target, is_foreign in (
            (pushed["sha"], "main", False),
            (pushed["sha"], "dev", True),
            (tested["head"], "main", False),
            (strange["head"], "main", True),
        ):
            checks = await stage.provider.checks(stage.repo, sha, skipped_pass=True)
            groups = {check.group for check in checks.items}
            found = await stage.provider.foreign_suites(stage.repo, sha, target)
            assert groups
            assert set(found) == (groups if is_foreign else set())

    async def test_a_run_says_whose_head_it_tests(self, stage):
        opened = await stage.act("open", by="dave", files={"a.txt": "a\n"}, fork=True)
        await stage.clock.sleep(1)
        run = stage.ci_run(opened["head"])
        found = await stage.provider.ci_run(stage.repo, run)
        assert (found.head_sha, found.of_fork, found.is_running) == (opened["head"], True, True)
        assert found.pull_requests == ()
        await stage.settle()
        assert not (await stage.provider.ci_run(stage.repo, run)).is_running

    async def test_what_does_not_exist_is_none(self, stage):
        run, _ = await stage.ran({"a.txt": "a\n"})
        assert await stage.provider.ci_run(stage.repo, "999") is None
        assert await stage.provider.ci_run(stage.repo, run, 2) is None
        assert not await stage.provider.ci_jobs(stage.repo, run, 2)
        assert not await stage.provider.ci_jobs(stage.repo, "999", 1)
        assert not await stage.provider.ci_artifacts(stage.repo, "999")

    async def test_in_a_repository_that_is_gone_nothing_is_asked(self, stage):
        nowhere = RepoRef(stage.repo.host, "octo", "nothing")
        for asked in (
            stage.provider.ci_run(nowhere, "1"),
            stage.provider.ci_runs(nowhere, stage.clock.now().date()),
            stage.provider.ci_jobs(nowhere, "1", 1),
            stage.provider.ci_artifacts(nowhere, "1"),
        ):
            with pytest.raises(Gone) as gone:
                await asked
            assert gone.value.kind is GoneKind.REPOSITORY

    async def test_each_attempt_has_its_own_facts(self, stage):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"bad.txt": "x\n"})
        await stage.clock.sleep(60)
        await stage.run_again(run)
        first, second = [await stage.provider.ci_run(stage.repo, run, n) for n in (1, 2)]
        assert (first.attempt, first.outcome) == (1, CheckOutcome.FAILED)
        assert second == await stage.provider.ci_run(stage.repo, run)
        assert second.started_at - first.started_at >= timedelta(seconds=60)
        jobs = [await stage.provider.ci_jobs(stage.repo, run, n) for n in (1, 2)]
        assert jobs[0][0].id != jobs[1][0].id

    async def test_runs_that_have_ended_are_listed_newest_first(self, stage):
        today = stage.clock.now().date()
        ran = [(await stage.ran({f"{name}.txt": "x\n"}))[0] for name in ("a", "bad")]
        forked, _ = await stage.ran({"c.txt": "c\n"}, by="dave", fork=True)
        pushed = await stage.act("push", branch="main", files={"d": "d\n"}, bypass=True)
        found = await stage.provider.ci_runs(stage.repo, today)
        assert [each.id for each in found] == [forked, *reversed(ran)]
        assert [each.of_fork for each in found] == [True, False, False]
        assert found[1] == await stage.provider.ci_run(stage.repo, ran[1])
        await stage.settle()
        running = stage.ci_run(pushed["sha"])
        assert (await stage.provider.ci_runs(stage.repo, today))[0].id == running

    async def test_only_runs_of_these_days_are_listed(self, stage):
        await stage.ran({"a.txt": "a\n"})
        tomorrow = stage.clock.now().date() + timedelta(days=1)
        assert await stage.provider.ci_runs(stage.repo, tomorrow) == ()

    async def test_of_many_runs_the_newest_are_listed(self, stage):
        run, _ = await stage.ran({"a.txt": "a\n"})
        stage.repeat_run(run, times=250)
        found = await stage.provider.ci_runs(stage.repo, stage.clock.now().date())
        assert len(found) == 200

    async def test_a_job_is_told_with_its_machine_and_its_steps(self, stage):
        await stage.plan_ci([REPORTED, "{ name: lint }"])
        run, _ = await stage.ran({"bad.txt": "x\n"})
        unit, lint = await stage.provider.ci_jobs(stage.repo, run, 1)
        assert (unit.name, unit.workflow, unit.runner) == ("unit", "ci", "linux-7")
        assert (unit.outcome, unit.failed_steps) == (CheckOutcome.FAILED, 2)
        assert unit.completed_at - unit.started_at == timedelta(seconds=3)
        assert (lint.outcome, lint.failed_steps) == (CheckOutcome.PASSED, 0)

    async def test_a_run_that_goes_on_shows_the_steps_that_have_failed(self, stage):
        await stage.plan_ci([STEPPED, "{ name: late, needs: [unit] }"])
        opened = await stage.act("open", files={"bad.txt": "x\n"})
        head = stage.issue(opened["number"]).pull.head_sha
        checks = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        groups = {one.group for one in checks.items}
        seen = []
        for seconds in (5, 10, 60):
            await stage.clock.sleep(seconds)
            [progress] = await stage.provider.ci_progress(stage.repo, head, groups)
            seen.append({job.name: job for job in progress.jobs})
        assert progress.file == ".sandbox/ci.yml"
        assert [len(jobs) for jobs in seen] == [1, 1, 2]
        first, failed, ended = [jobs["unit"] for jobs in seen]
        assert first.failures == ()
        assert failed.outcome is CheckOutcome.RUNNING
        assert [step.name for step in failed.failures] == ["Tests"]
        assert failed.failures[0].completed_at - failed.started_at == timedelta(seconds=10)
        assert (ended.outcome, ended.failures) == (CheckOutcome.FAILED, failed.failures)
        assert seen[2]["late"].outcome is CheckOutcome.SKIPPED
        assert {one.id for one in checks.items} >= {failed.id}

    async def test_only_the_runs_of_the_named_suites_and_commit_are_read(self, stage):
        _, head = await stage.ran({"a.txt": "a\n"})
        assert await stage.provider.ci_progress(stage.repo, head, {"1"}) == ()
        assert await stage.provider.ci_progress(stage.repo, stage.tip(), {"1"}, is_poll=True) == ()

    async def test_equal_workflow_files_have_equal_digests(self, stage):
        await stage.push_files({".github/workflows/ci.yml": WORKFLOW})
        first = stage.tip()
        plan = await stage.provider.ci_plan(stage.repo, first)
        assert [(job.file, job.key) for job in plan.jobs] == [(".github/workflows/ci.yml", "unit")]
        digests = [await stage.provider.ci_files(stage.repo, first)]
        await stage.push_files({"other.txt": "x\n"})
        digests.append(await stage.provider.ci_files(stage.repo, stage.tip()))
        await stage.push_files({".github/workflows/ci.yml": WORKFLOW.replace("make", "new")})
        digests.append(await stage.provider.ci_files(stage.repo, stage.tip()))
        assert digests[0] == digests[1]
        assert digests[0] != digests[2]

    async def test_without_workflow_files_there_is_no_plan(self, stage):
        assert (await stage.provider.ci_plan(stage.repo, stage.tip())).jobs == ()
        assert await stage.provider.ci_files(stage.repo, stage.tip())

    async def test_a_pull_request_says_how_long_its_slowest_check_run_took(self, stage):
        status = "{ name: preview, kind: status, seconds: 900 }"
        await stage.plan_ci(["{ name: lint, seconds: 20 }", "{ name: unit, seconds: 190 }", status])
        opened = await stage.act("open", files={"a.txt": "a\n"})
        number = opened["number"]
        await stage.clock.sleep(1)
        running = await stage.provider.pull_requests(stage.repo, [number])
        await stage.settle()
        ended = await stage.provider.pull_requests(stage.repo, [number])
        assert [each[number].own_minutes for each in (running, ended)] == [None, 3]
        assert (await stage.provider.pull_request(stage.repo, number)).own_minutes == 3

    @pytest.mark.parametrize("fork", [False, True])
    @pytest.mark.parametrize(
        ("changes", "subject"),
        [
            ([], Subject.MERGE),
            ([RETARGET], Subject.UNKNOWN),
            ([RETARGET, BACK], Subject.UNKNOWN),
            ([RETARGET, RUN_AGAIN], Subject.UNKNOWN),
            ([RETARGET, PUSH], Subject.MERGE),
            ([("rename", {"branch": "main", "to": "trunk"})], Subject.UNKNOWN),
            ([MOVE, REWRITE], Subject.UNKNOWN),
            ([MOVE], Subject.MERGE),
        ],
    )
    async def test_a_run_is_of_the_base_that_the_pull_request_had_when_it_was_made(
        self, stage, changes, subject, fork
    ):
        await stage.act("push", branch="dev", files={"dev.txt": "x"})
        author = "dave" if fork else "alice"
        before = stage.tip()
        number, head = await stage.open({"a.txt": "a"}, by=author, fork=fork, head="topic")
        for name, fields in changes:
            if name == "run again":
                await stage.run_again(stage.ci_run(head))
            elif name == "rewrite":
                await stage.act("force_push", branch="main", to=before)
            else:
                is_own = name == "push" and "branch" not in fields
                where = {} if "branch" in fields else {"number": number}
                await stage.act(name, by=author if is_own else "alice", **where, **fields)
            await stage.settle()
        pull = await stage.provider.pull_request(stage.repo, number)
        assert {one.subject for one in await judged(stage, pull)} == {subject}

    @pytest.mark.parametrize(
        ("other", "subjects"),
        [
            ([], {Subject.UNKNOWN}),
            ([("close", {})], {Subject.UNKNOWN}),
            ([("close", {}), PUSH], {Subject.MERGE}),
        ],
    )
    async def test_a_run_may_be_of_another_pull_request_of_the_same_branch(
        self, stage, other, subjects
    ):
        await stage.act("push", branch="dev", files={"dev.txt": "x"})
        number, _ = await stage.open({"a.txt": "a"}, head="topic")
        second = (await stage.act("open", head="topic", base="dev"))["number"]
        await stage.settle()
        for name, fields in other:
            await stage.act(name, number=second if name == "close" else number, **fields)
            await stage.settle()
        pull = await stage.provider.pull_request(stage.repo, number)
        assert {one.subject for one in await judged(stage, pull)} == subjects

    async def test_without_the_right_to_read_runs_a_changed_base_makes_all_unknown(self, stage):
        await stage.act("push", branch="dev", files={"dev.txt": "x"})
        number, _ = await stage.open({"a.txt": "a"}, head="topic")
        await stage.permit(actions=None)
        pull = await stage.provider.pull_request(stage.repo, number)
        assert {one.subject for one in await judged(stage, pull)} == {Subject.MERGE}
        for base in ("dev", "main"):
            await stage.act("retarget", number=number, base=base)
        assert {one.subject for one in await judged(stage, pull)} == {Subject.UNKNOWN}

    async def test_a_job_has_the_id_of_its_check(self, stage):
        await stage.plan_ci([REPORTED, "{ name: lint }"])
        run, head = await stage.ran({"bad.txt": "x\n"})
        jobs = await stage.provider.ci_jobs(stage.repo, run, 1)
        checks = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        assert {(job.id, job.name) for job in jobs} == {
            (check.id, check.name) for check in checks.items
        }

    async def test_reports_are_read_out_of_an_artifact(self, stage):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"a.xml": "<testsuite/>\n"})
        artifact = await only_artifact(stage, run)
        assert (artifact.name, artifact.is_expired) == ("junit-unit", False)
        assert artifact.size > 0
        assert artifact.created_at is not None
        own, made_up = await content(stage, artifact)
        assert own == ArchiveFile("a.xml", b"<testsuite/>\n")
        assert made_up.name == "junit.xml"
        assert made_up.content.count(b"<testcase") == 2
        assert b"<failure" not in made_up.content

    async def test_a_run_again_leaves_new_artifacts_under_new_ids(self, stage):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"bad.txt": "x\n"})
        first = await only_artifact(stage, run)
        await stage.run_again(run, failed_only=True)
        old, new = await stage.provider.ci_artifacts(stage.repo, run)
        assert (old, new.name) == (first, first.name)
        await stage.run_again(run)
        newest = await only_artifact(stage, run)
        assert newest.id not in (old.id, new.id)

    async def test_runs_without_new_artifacts_cost_nothing(self, stage):
        await stage.plan_ci([REPORTED])
        first, _ = await stage.ran({"a.xml": "<testsuite/>\n"})
        assert len(await stage.provider.ci_artifacts(stage.repo, first)) == 1
        await stage.plan_ci(["{ name: lint }"])
        other, _ = await stage.ran({"a.txt": "a\n"})
        before = len(stage.calls())
        assert await stage.provider.ci_artifacts(stage.repo, other) == ()
        assert len(await stage.provider.ci_artifacts(stage.repo, first)) == 1
        assert {call["status"] for call in stage.calls(before)} == {304}

    async def test_many_artifacts_are_listed_oldest_first(self, stage):
        run, _ = await stage.ran({"a.txt": "a\n"})
        for number in range(105):
            stage.leave(run, f"report-{number}", [])
        listed = await stage.provider.ci_artifacts(stage.repo, run)
        assert [each.name for each in listed] == [f"report-{number}" for number in range(105)]

    async def test_nothing_is_asked_for_what_has_expired_or_is_too_large(self, stage):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"a.txt": "a\n"})
        stage.expire_artifacts(run)
        assert await content(stage, await only_artifact(stage, run)) == NoArchive(
            "The artifact has expired."
        )
        stage.replace_archive(run, bytes(101 << 20))
        assert isinstance(await content(stage, await only_artifact(stage, run)), NoArchive)
        assert stage.called("GET", "/zip") == 0

    async def test_what_expires_or_goes_meanwhile_is_no_archive(self, stage):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"a.txt": "a\n"})
        artifact = await only_artifact(stage, run)
        stage.expire_artifacts(run)
        assert await content(stage, artifact) == NoArchive("The artifact has expired.")
        stage.forget_artifacts(run)
        assert await content(stage, artifact) == NoArchive("The artifact is gone.")

    async def test_an_archive_that_is_none_is_refused(self, stage):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"a.txt": "a\n"})
        stage.replace_archive(run, b"<html>")
        found = await content(stage, await only_artifact(stage, run))
        assert found == NoArchive("It is not a zip archive.")

    async def test_a_file_that_leads_out_is_refused_by_itself(self, stage):
        run, _ = await stage.ran({"a.txt": "a\n"})
        stage.leave(run, "junit", [("../../a.xml", b"x"), ("b.xml", b"y")])
        refused, read = await content(stage, await only_artifact(stage, run))
        assert isinstance(refused, RefusedFile)
        assert read == ArchiveFile("b.xml", b"y")

    @pytest.mark.parametrize("kind", ["fail_before", "reset_before", "truncate"])
    @pytest.mark.parametrize("path", ["*/artifacts/*/zip", "/_storage/*"])
    async def test_trouble_on_the_way_never_looks_like_an_archive(self, stage, kind, path):
        await stage.plan_ci([REPORTED])
        run, _ = await stage.ran({"a.txt": "a\n"})
        artifact = await only_artifact(stage, run)
        await stage.fault(kind, nth=None, path=path)
        if kind == "truncate" and path.endswith("zip"):
            # A redirect has no body that could be cut.
            assert len(await content(stage, artifact)) == 1
            return
        with pytest.raises(Unavailable):
            await content(stage, artifact)
        stage.clear_faults()
        assert len(await content(stage, artifact)) == 1
