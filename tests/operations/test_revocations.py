"""Passes that a later failure of the same CI job contradicts (docs/design/evidence.md 6)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.evidence import revocations
from service.http.callers import Caller
from service.mergequeue.engine.inputs import PassRevoked
from service.mergequeue.operations import naming
from service.provenance import Proof
from service.provider.ci import CiJob, CiTrigger, ProvedJob
from service.testhealth.detector.completeness import Account
from service.testhealth.operations import settings
from service.testhealth.store.uploads import Upload
from service.vocabulary import SYSTEM, CheckOutcome, Role, Sha
from tests.harness.values import ValuesProvider
from tests.operations.test_result_waits import RUN_ID, RUN_SHA, keep, stage
from tests.operations.upload_stage import HOST, NOW, Stage
from tests.store.builders import a_check, a_run

__all__ = ["stage"]

BEGAN = NOW + timedelta(hours=19)
UNIT = replace(a_check("unit"), id="90")
RUN = a_run(RUN_ID, sha=RUN_SHA, created_at=BEGAN, built_at=BEGAN, checks=(UNIT,))
JOB = ProvedJob("id of widgets", "7", 1, CiTrigger.HEAD, RUN_SHA, "main", None)
BY_COMMAND = {"command_exit_code": 0, "runner": "pytest", "command_key": "pytest"}
MINUTE = timedelta(minutes=1)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing of this depends on the kind of database."""
    return sqlite_url


@pytest.fixture
async def ours(stage: Stage) -> Stage:
    """The CI of a run, which has sent a failure that is quarantined: it was told to pass."""
    changes = {"quarantine_enabled": True, "auto_quarantine_enabled": True}
    await settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    for minute, letters in enumerate("FPFP", 1):
        stage.clock.present = NOW + minute * MINUTE
        told = {"run_id": f"early {minute}", "pr_number": 5}
        await stage.ran({"total": letters}, ran_at=stage.clock.present, **told)
    for minute in (10, 11, 12):
        stage.clock.present = NOW + minute * MINUTE
        sha, run_id = Sha(f"{minute}" * 20), f"{minute}"
        job = proved(stage, "main", run_id=run_id, sha=sha, check_run_id=run_id)
        told = {"run_id": run_id, "branch": "main", "sha": sha, "caller": job}
        await stage.ran({"total": "P"}, ran_at=stage.clock.present, **BY_COMMAND, **told)
    stage.clock.present = BEGAN + MINUTE
    await keep(stage, RUN)
    await excused(stage, "a secret")
    return stage


async def excused(stage: Stage, session: str, exit_code: int = 1, **tests: str) -> None:
    """A job of the run sends this, and is told to pass."""
    job = proved(stage, naming.test_branch(RUN), check_run_id="90")
    told = SAME | BY_COMMAND | {"command_exit_code": exit_code, "session": session}
    sent = await stage.ran(tests or {"total": "F"}, caller=job, **told)
    assert sent.verdict.exit_code == 0, sent.verdict.message


def proved(stage: Stage, branch: str, **claims) -> Caller:
    """A job of a CI run, or the run alone if it names no check run."""
    job = replace(JOB, branch=branch, **claims)
    return replace(stage.caller, token_id="", role=Role.CI, job=job)


SAME = {"sha": RUN_SHA, "run_id": "7", "session": "a secret"}


async def doubts(stage: Stage, run=RUN) -> list[tuple[str, str]]:
    """The sessions of each pair."""
    found = await stage.runtime.store.read(revocations.doubts_of, stage.repository.id, run)
    return [(one.account.session, other.account.session) for one, other in found]


async def test_a_later_failure_of_the_sender_contradicts_its_pass(ours):
    assert await doubts(ours) == []
    await ours.ran({"mail": "F"}, **SAME)
    assert await doubts(ours) == [("a secret", "a secret")]


@pytest.mark.fault(
    "another holder of a token sends failures for a CI run", holds="no pass is revoked", within="-"
)
async def test_a_shared_token_cannot_contradict_a_pass(ours):
    await ours.ran({"mail": "F"}, **SAME | {"session": ""})
    await ours.ran({"post": "F"}, **SAME | {"session": "another"})
    assert await doubts(ours) == []


async def test_a_job_that_is_proved_to_be_of_the_ci_run_contradicts_its_pass(ours):
    by = proved(ours, naming.test_branch(RUN))
    await ours.ran({"mail": "F"}, **SAME | {"session": ""}, caller=by)
    assert await doubts(ours) == [("a secret", "")]


async def test_two_senders_without_a_session_are_not_the_same(ours):
    await excused(ours, "", total="F", post="P")
    await ours.ran({"mail": "F"}, **SAME | {"session": ""})
    assert await doubts(ours) == []


async def test_a_sender_whose_command_passed_is_not_contradicted(ours):
    await excused(ours, "quiet", exit_code=0, total="F", post="P")
    await ours.ran({"mail": "F"}, **SAME | {"session": "quiet"})
    assert await doubts(ours) == []


@pytest.mark.parametrize("change", [{"run_id": "8"}, {"run_attempt": 2}, {"sha": Sha("e" * 40)}])
async def test_a_failure_of_another_ci_run_or_attempt_contradicts_nothing(ours, change):
    await ours.ran({"mail": "F"}, **SAME | change)
    assert await doubts(ours) == []


async def test_an_earlier_failure_contradicts_no_later_pass(ours):
    now, ours.clock.present = ours.clock.present, ours.clock.present - MINUTE
    await ours.ran({"mail": "F"}, **SAME)
    ours.clock.present = now
    assert await doubts(ours) == []


@pytest.mark.parametrize("tests", [{"mail": "P"}, {"total": "F", "again": "FP"}])
async def test_a_later_upload_whose_failures_are_all_excused_contradicts_nothing(ours, tests):
    await ours.ran(tests, **SAME, job="again")
    assert await doubts(ours) == []


async def test_a_run_without_a_commit_has_no_pass_to_contradict(ours):
    await ours.ran({"mail": "F"}, **SAME)
    assert await doubts(ours, replace(RUN, sha=None)) == []


@pytest.mark.parametrize("exit_code", [None, 0])
async def test_a_pass_for_which_no_failure_was_excused_is_not_contradicted(stage, exit_code):
    stage.clock.present = BEGAN + MINUTE
    await keep(stage, RUN)
    await stage.ran({"total": "P"}, **SAME, command_exit_code=exit_code)
    await stage.ran({"mail": "F"}, **SAME)
    assert await doubts(stage) == []


async def test_a_sender_that_was_told_to_fail_is_not_contradicted(stage):
    stage.clock.present = BEGAN + MINUTE
    await keep(stage, RUN)
    await stage.ran({"total": "F"}, **SAME, command_exit_code=1)
    await stage.ran({"mail": "F"}, **SAME)
    assert await doubts(stage) == []


class Jobs(ValuesProvider):
    """A host on which each CI run has these jobs; `asked` are the attempts that were read."""

    def __init__(self) -> None:
        super().__init__(HOST)
        self.names = {"90": "unit", "91": "lint", "92": "docs"}
        self.asked: list[tuple[str, int]] = []

    async def ci_jobs(self, repo, run_id, attempt):
        self.asked.append((run_id, attempt))
        return [
            CiJob(id_, name, "CI", "", CheckOutcome.PASSED, 0, None, None)
            for id_, name in self.names.items()
        ]


def sent(job: str, run_id: str | None = "7", attempt: int = 1, page: str = "") -> Upload:
    account = Account(check_run=page, proof=Proof.JOB if page else Proof.TOKEN)
    return Upload(
        id=job, digest=job, kind="queue", code_id="c", sha=RUN_SHA, job=job, ran_at=NOW,
        received_at=NOW, run_id=run_id, run_attempt=attempt, account=account,
    )  # fmt: skip


async def revoked(*pairs, run=RUN, provider=None) -> tuple[str, ...] | None:
    """The checks that are revoked because of these pairs."""
    host = provider or Jobs()
    found = await revocations.revoked_by(host, host.ref, run, pairs)
    assert found is None or found == PassRevoked(run.id, found.checks)
    return None if found is None else found.checks


async def test_the_check_of_the_job_of_both_uploads_is_revoked():
    assert await revoked((sent("unit"), sent("unit"))) == ("90",)
    assert await revoked((sent("unit"), sent("lint"))) is None


async def test_a_check_that_is_not_required_or_is_revoked_already_is_not_revoked():
    assert await revoked((sent("lint"), sent("lint"))) is None
    assert await revoked((sent("unit"), sent("unit")), run=replace(RUN, revoked=("90",))) is None


async def test_any_pair_may_revoke_a_check():
    pairs = ((sent("lint"), sent("lint")), (sent("unit"), sent("unit")))
    assert await revoked(*pairs) == ("90",)


async def test_only_ci_runs_of_the_provider_are_read_the_newest_twenty():
    host = Jobs()
    pairs = [(sent("unit", str(number)), sent("unit", str(number))) for number in range(25)]
    strange = [(sent("unit", name), sent("unit", name)) for name in (None, "https://ci.test/1")]
    await revoked(*pairs, *strange, provider=host)
    assert host.asked == [(str(number), 1) for number in range(5, 25)]


@pytest.mark.parametrize(
    ("first", "second", "ids"),
    [
        ("https://ci.test/1", "https://ci.test/1", ("id-unit",)),
        ("https://ci.test/2", "https://ci.test/1", None),
        ("https://ci.test/2", "https://ci.test/2", None),
        ("17", "17", None),
    ],
)
async def test_a_check_of_another_ci_is_revoked_by_the_page_of_its_job(first, second, ids):
    checks = [
        replace(a_check(name), url=page)
        for name, page in (
            ("unit", "https://ci.test/1"),
            ("lint", "https://ci.test/1"),
            ("unit", "17"),
        )
    ]
    run = replace(RUN, checks=tuple(checks))
    pair = (sent("unit", None, page=first), sent("unit", None, page=second))
    assert await revoked(pair, run=run) == ids
