"""CI of the repository: jobs, their check runs in GitHub's words, and what they upload."""

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.github import outcomes
from service.provenance import Proof
from service.testhealth.reports.jobs import Job
from service.vocabulary import Check, CheckKind, Sha
from tests.hostile.truth import FAILED_TESTS, RED, SKIPS, TESTS, Truth, Upload

CI, OTHER_APP = "7", "13"


@dataclass
class Running:
    """A job on a commit, from the moment its workflow starts."""

    name: str
    truth: Truth
    id: str
    is_over: bool = False


@dataclass
class Ci:
    """What CI, and everybody who can write beside it, has said of each commit."""

    chance: random.Random
    jobs: dict[Sha, list[Running]] = field(default_factory=lambda: defaultdict(list))
    said: dict[Sha, list[Check]] = field(default_factory=lambda: defaultdict(list))
    uploads: dict[Sha, list[Upload]] = field(default_factory=lambda: defaultdict(list))
    made: int = 100

    def begin(self, sha: Sha, truths: Mapping[str, Truth]) -> None:
        """The workflow starts on a commit: the check runs of all its jobs are there at once."""
        if sha in self.jobs:
            return
        for name, truth in truths.items():
            if truth not in (Truth.NEVER, Truth.NOT_HERE):
                job = Running(name, truth, self.number())
                self.jobs[sha].append(job)
                self.say(sha, a_run(name, job.id, "queued"))

    def again(self, sha: Sha, names: tuple[str, ...]) -> None:
        """Jobs run once more; they end as before, since the tree is the same."""
        for job in list(self.jobs[sha]):
            if job.name in names and job.is_over:
                self.jobs[sha].remove(job)
                anew = Running(job.name, job.truth, self.number())
                self.jobs[sha].append(anew)
                self.say(sha, a_run(job.name, anew.id, "queued"))

    def number(self) -> str:
        """The next id; later ones are greater."""
        self.made += 1
        return str(self.made)

    def starts(self, sha: Sha, job: Running) -> None:
        """The check run of a job appears."""
        self.say(sha, a_run(job.name, job.id, "in_progress"))

    def ends(self, sha: Sha, job: Running) -> None:
        """A job ends as it truly does, and sends its report."""
        job.is_over = True
        word = "success" if job.truth is Truth.PASSES else "failure"
        if job.truth in SKIPS:
            word = "skipped"
        self.say(sha, a_run(job.name, job.id, word))
        if job.truth in RED:
            upload = self._own(job)
            if upload is not None:
                self.uploads[sha].append(upload)

    def say(self, sha: Sha, check: Check) -> None:
        """A report on a commit, in place of the same one before."""
        kept = [one for one in self.said[sha] if (one.kind, one.id) != (check.kind, check.id)]
        self.said[sha] = [*kept, check]

    def reports(self, sha: Sha) -> tuple[Check, ...]:
        """Everything that GitHub has on a commit now, as the adapter reads it."""
        return outcomes.guarded(self.said[sha])

    def jobs_of(self, sha: Sha) -> list[Job]:
        """The jobs of the CI run, as the provider lists them."""
        return [
            Job(one.id, one.name, "CI", f"runner {one.name}", one.is_over and one.truth in RED)
            for one in self.jobs[sha]
        ]

    def failed_steps(self, sha: Sha, id_: str) -> int:
        """How many steps of a job failed, by the provider."""
        more = any(one.truth is Truth.MORE for one in self.jobs[sha] if one.id == id_)
        return 2 if more else 1

    def _own(self, job: Running) -> Upload | None:
        """The report of the job itself; None where it ended before it could send one."""
        failed, missing, code = FAILED_TESTS.get(job.truth, ("flaky 1",)), [], 1
        if job.truth is Truth.CRASHES:
            way = self.chance.choice(("no report", "missing", "code"))
            if way == "no report":
                return None
            missing = [f"t{at}" for at in range(TESTS // 2)] if way == "missing" else []
            code = 2 if way == "code" else 1
        return self.upload(
            job.name,
            Proof.JOB,
            job.id,
            failed=failed,
            missing=tuple(missing),
            exit_code=code,
        )

    def upload(self, job: str, proof: Proof, sender: str, **more: Any) -> Upload:
        """A report of a job of this name: complete, with one quarantined failure."""
        key, machine = f"CI / {job}", f"runner {job}"
        return Upload(self.number(), key, machine, proof, sender, **more)


def a_run(name: str, number: str, word: str, *, app: str = CI, suite: str = "1") -> Check:
    """A check run in GitHub's word, as the adapter takes it in: its status, or its conclusion."""
    is_open = word in outcomes.RUN_STATUSES
    status, conclusion = (word, None) if is_open else (outcomes.COMPLETED, word)
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=name,
        source_id=app,
        group=suite,
        id=number,
        outcome=outcomes.of_run(status, conclusion, skipped_pass=True),
        raw=word,
        url=f"https://ci.example/{number}",
    )


def a_status(name: str, number: str, state: str) -> Check:
    """A commit status of a person."""
    return Check(
        kind=CheckKind.STATUS,
        name=name,
        source_id=None,
        account="1003",
        author="bob",
        group="",
        id=number,
        outcome=outcomes.of_state(state),
        raw=state,
        url=f"https://ci.example/{number}",
    )
