"""One history: the honest parts of the world, and players who act between them.

The queue, its permits and the rules about reports are the real ones; what does I/O in the product
(reading, storing, sending) is a few lines here.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from service.evidence import failed_checks
from service.mergequeue.engine import engine, inputs
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import Input, Landed
from service.mergequeue.engine.model import MergeQueue, RequiredSet, Run
from service.mergequeue.engine.outputs import Action, AskEvidence, Land, RerunChecks, Step
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Evidence, Facts
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import permits
from service.testhealth.detector import completeness, excuses
from service.testhealth.detector.excuses import FailedCheck, Rules, Suspect
from service.testhealth.reports import jobs
from service.testhealth.reports.jobs import Sent
from service.vocabulary import (
    Blocker,
    BlockerCode,
    Check,
    CheckKind,
    PullRequestState,
    RequiredName,
    RequiredSource,
    Sha,
)
from tests.hostile import truth
from tests.hostile.ci import CI, Ci
from tests.hostile.truth import MAY_LAND, Truth
from tests.mergequeue.stage import ALICE, Stage, facts_of

TURNS = 45
CALM_TURNS = 20
NAMES = ("unit", "integration", "lint")
PULL_REQUESTS_MAX = 3
RULES = Rules(excused_max=20)
BAD_SHARE = 0.5
BAD = (
    *(Truth.CRASHES, Truth.CRASHES, Truth.CRASHES, Truth.FAILS, Truth.FAILS, Truth.MORE),
    *(Truth.SKIPPED_HERE, Truth.NOT_HERE, Truth.NEVER),
)
"""What most often is wrong with one check of a change."""


class Violation(AssertionError):
    """Something landed that nothing proves."""


class World(Stage):
    """A queue, CI, pull requests, and a post that loses, delays and repeats."""

    def __init__(self, seed: int) -> None:
        super().__init__(QueueConfig(), manual_build=True, manual_land=True)
        chance = self.chance = random.Random(seed)
        self.names = tuple(chance.sample(NAMES, chance.choice((1, 2, 2, 3))))
        self.ci = Ci(chance)
        self.truths: dict[int, dict[str, Truth]] = {}
        self.tree_of_run: dict[str, tuple[int, ...]] = {}
        self.moved: dict[str, Sha] = {}
        self.late: list[Callable[[], Input]] = []
        self.asked: dict[str, AskEvidence] = {}
        self.answered: dict[str, tuple[object, ...]] = {}
        self.unreadable = False
        self.cancelled: set[int] = set()
        self.merged: list[int] = []
        self.turns = TURNS
        self.tell(inputs.RequiredChanged(self.required()))
        self.tell(inputs.RepositoryChanged(available=True, sends_results=True))

    # --- what is true

    def required(self) -> RequiredSet:
        """What the rules of the branch require, each name of the App that reports it."""
        names = tuple(RequiredName(name, CI, CheckKind.SUITE_RUN) for name in self.names)
        return RequiredSet(names, RequiredSource.BRANCH_PROTECTION)

    def truths_of(self, prs: tuple[int, ...]) -> dict[str, Truth]:
        """How the required jobs truly end on the tree of these pull requests."""
        names = (*NAMES, "late")
        return {name: truth.together([self.truths[pr][name] for pr in prs]) for name in names}

    def live(self) -> list[Run]:
        """Runs that have a commit."""
        return [run for run in self.queue.runs.values() if run.sha is not None and run.prs]

    # --- steps

    def _step(self, one: Input) -> Step:
        """Take one input, without the checks that the engine's own tests make."""
        step = engine.step(self.queue, one, self.now)
        self.queue = step.queue
        self.wake_at = step.wake_at
        return step

    def _answers(self, action: Action) -> list[Input]:
        if isinstance(action, AskEvidence):
            self.asked[action.run] = action
            return []
        if isinstance(action, RerunChecks):
            run = self.queue.runs.get(action.run)
            if run is not None and run.sha is not None:
                self.ci.again(run.sha, action.names)
        return super()._answers(action)

    def turn(self, moves: Sequence[Callable[["World"], None]]) -> None:
        """One move of somebody, and the queue's clock."""
        self.now += timedelta(seconds=self.chance.choice((1, 3, 10, 40)))
        self.chance.choice(moves)(self)
        self._wakes()

    def rests(self) -> None:
        """Nobody else moves: jobs end, everything is read, and the queue decides."""
        self.unreadable = False
        self.tell(self._rules())
        self.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
        for pr in list(self.queue.entries):
            self.facts[pr] = replace(self.facts[pr], blockers=())
            self.tell(inputs.FactsChanged(self.facts[pr]))
        for _ in range(CALM_TURNS):
            if not self.queue.entries:
                break
            for one in (
                World.makes_branches,
                *EVERY_JOB,
                World.reads,
                World.explains,
                World.lands_now,
            ):
                self.now += timedelta(seconds=20)
                one(self)
                self._wakes()

    def _wakes(self) -> None:
        if self.wake_at is not None and self.wake_at <= self.now:
            self.tell(inputs.TimePassed())

    # --- honest people

    def opens(self) -> None:
        pr = len(self.truths) + 1
        if pr > PULL_REQUESTS_MAX:
            self._submits_again()
            return
        self.truths[pr] = self._drawn()
        self.facts[pr] = self._with_skips(pr, facts_of(pr))
        self.tell(inputs.Submit(self.facts[pr], ALICE))

    def _submits_again(self) -> None:
        gone = self.truths.keys() - self.queue.entries.keys() - set(self.merged)
        pr = self._one_of(gone)
        if pr is not None:
            self.tell(inputs.Submit(self.facts[pr], ALICE))

    def _drawn(self) -> dict[str, Truth]:
        """How the jobs of a change end: most often at most one of them not well."""
        names = (*NAMES, "late")
        drawn = {name: self.chance.choice((Truth.PASSES, *sorted(MAY_LAND))) for name in names}
        if self.chance.random() < BAD_SHARE:
            drawn[self.chance.choice(self.names)] = self.chance.choice(BAD)
        return drawn

    def _with_skips(self, pr: int, facts: Facts) -> Facts:
        skipped = tuple(
            sorted(name for name, one in self.truths[pr].items() if one is Truth.SKIPPED)
        )
        return replace(facts, own_skipped=skipped)

    def pushes(self) -> None:
        """An author pushes; the delivery comes later, or never."""
        pr = self._one_of(self.queue.entries)
        if pr is None:
            return
        self.versions[pr] = self.versions.get(pr, 1) + 1
        self.truths[pr] = self._drawn()
        fresh = facts_of(pr, self.versions[pr])
        self.facts[pr] = self._with_skips(pr, fresh)
        self._mails(lambda: inputs.FactsChanged(self.facts[pr]))

    def requests_changes(self) -> None:
        pr = self._one_of(self.queue.entries)
        if pr is None:
            return
        blocked = self.facts[pr].blockers
        wants = () if blocked else (Blocker(BlockerCode.CHANGES_REQUESTED, None),)
        self.facts[pr] = replace(self.facts[pr], blockers=wants)
        self._mails(lambda: inputs.FactsChanged(self.facts[pr]))

    def cancels(self) -> None:
        pr = self._one_of(self.queue.entries)
        if pr is not None:
            self.tell(inputs.Cancel(pr, Reason.USER_REQUESTED, ALICE))

    def moves_target(self) -> None:
        """Somebody pushes to the target; the queue hears of it later."""
        self.target.move(self.target.tree | {("foreign", str(self.ci.number()))})
        self._mails(lambda: inputs.TargetMoved(self.target.tip))

    def loses_rules(self) -> None:
        """The rules of the branch cannot be read for a while."""
        self.unreadable = not self.unreadable
        self.tell(self._rules())

    def requires_more(self) -> None:
        """An administrator requires another check."""
        if "late" not in self.names:
            self.names = (*self.names, "late")
            self._mails(self._rules)

    def pauses(self) -> None:
        paused = self.queue.state is QueueState.PAUSED
        state = QueueState.RUNNING if paused else QueueState.PAUSED
        self.tell(inputs.SetState(state, None if paused else "a pause", ALICE))

    def _rules(self) -> Input:
        if self.unreadable:
            return inputs.RequiredChanged(RequiredSet(), error="GitHub answers 500")
        return inputs.RequiredChanged(self.required())

    # --- CI and the post

    def makes_branches(self) -> None:
        for run in list(self.builds):
            action = self.builds[run]
            prs = tuple(step.pr for step in action.steps)
            self.build(run)
            made = self.queue.runs.get(run)
            if made is not None and made.sha is not None and prs:
                self.tree_of_run[run] = prs
                self.ci.begin(made.sha, self.truths_of(prs))

    def ci_works(self) -> None:
        """Jobs begin and end."""
        waiting = [
            (sha, job)
            for run in self.live()
            if (sha := run.sha) is not None
            for job in self.ci.jobs[sha]
            if not job.is_over
        ]
        if not waiting:
            return
        sha, job = self.chance.choice(waiting)
        if self.chance.random() < 0.3:
            self.ci.starts(sha, job)
        else:
            self.ci.ends(sha, job)

    def reads(self) -> None:
        """A sweep, or a delivery that leads to a read."""
        for run in self.live():
            self._reads_run(run)

    def reads_late(self) -> None:
        """A read that is processed later than another one."""
        run = self.chance.choice(self.live() or [None])
        if run is not None and run.sha is not None:
            checks = self.ci.reports(run.sha)
            self.late.append(
                lambda: inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True)
            )

    def post_comes(self) -> None:
        if self.late:
            one = self.late.pop(self.chance.randrange(len(self.late)))()
            self.tell(one)
            if self.chance.random() < 0.2:
                self.tell(one)

    def _reads_run(self, run: Run) -> None:
        sha = self.moved.get(run.id, run.sha or Sha(""))
        self.tell(inputs.ChecksReported(run.id, sha, self.ci.reports(sha), True))

    def _mails(self, one: Callable[[], Input]) -> None:
        if self.chance.random() < 0.7:
            self.late.append(one)

    def _one_of(self, prs: Iterable[int]) -> int | None:
        known = sorted(prs)
        return self.chance.choice(known) if known else None

    # --- evidence: whose report it is, whether it is complete, and why the check failed

    def explains(self) -> None:
        """Answer what the queue has asked, and again for each upload that came since."""
        for action in list(self.asked.values()):
            run = self.queue.runs.get(action.run)
            if run is None or run.sha is None:
                del self.asked[action.run]
                continue
            known = (action.attempt, action.checks, len(self.ci.uploads[run.sha]))
            if run.attempt == action.attempt and self.answered.get(run.id) != known:
                self.answered[run.id] = known
                self._explains_run(run)

    def _explains_run(self, run: Run) -> None:
        failing = failed_checks.failing_of(run)
        found = [self._failed_check(run, name, ids) for name, ids in failing.items()]
        checks = [one for one in found if one is not None]
        if not failing or len(checks) < len(found):
            return
        suspects = [Suspect(pr, frozenset({f"src/{pr}.py"})) for pr in run.prs]
        known = excuses.judge(checks, suspects, RULES)
        self.tell(
            inputs.EvidenceReported(
                run.id,
                Evidence(run.attempt, known.explanations, known.fingerprint, gaps=known.gaps),
            )
        )

    def _failed_check(self, run: Run, name: str, ids: frozenset[str]) -> FailedCheck | None:
        """A failed check with the uploads of its job; None while there are none."""
        sha = run.sha or Sha("")
        ran = self.ci.jobs_of(sha)
        own = [job for job in ran if job.id in ids]
        sent = [Sent(one.id, one.key, one.machine, one.sender) for one in self.ci.uploads[sha]]
        chosen = {upload for job in own for upload in jobs.uploads_of(job, ran, sent)}
        if len(own) < len(ids) or not chosen:
            return None
        conclusions = {
            one.required.name: one.check.raw
            for one in verdict.standings_of(run)
            if one.check is not None
        }
        own_uploads = [one for one in self.ci.uploads[sha] if one.id in chosen]
        enough = [one for one in own_uploads if completeness.is_enough(one.proof, truth.NEEDS)]
        uploads = enough or own_uploads
        failed = sorted({test for one in own_uploads for test in one.failed})
        return FailedCheck(
            name,
            is_reported=True,
            failed_steps=max(self.ci.failed_steps(sha, job.id) for job in own),
            tests=tuple(truth.a_test(name, test) for test in failed),
            reports=(truth.report_of(name, uploads, conclusions[name]),),
        )

    # --- landing

    def lands_now(self) -> None:
        for run in list(self.lands):
            action = self.lands.pop(run)
            # An effect may be carried out late.
            if self.chance.random() < 0.3:
                self.turn(MEANWHILE)
            self._last_look(action)
            if permits.against(self.queue, action, self.now) is not None:
                stop = inputs.LandingStopCode.STALE
                self.tell(inputs.LandingStopped(run, action.steps[0].position, stop, "stale"))
                continue
            self.proved(action)
            for answer in self.landed(action):
                self.tell(answer)

    def _last_look(self, action: Land) -> None:
        """Everything is read again that the landing depends on."""
        for step in action.steps:
            self.tell(inputs.FactsChanged(self.facts[step.pr]))
        self.tell(inputs.TargetMoved(self.target.tip))
        self.tell(self._rules())
        run = self.queue.runs.get(action.run)
        if run is not None:
            self._reads_run(run)
            fresh = self.queue.runs.get(action.run)
            if fresh is not None and fresh.sha is not None:
                self._explains_run(fresh)

    def landed(self, action: Land) -> list[Input]:
        """The provider lands it."""
        for step in action.steps:
            self.merged.append(step.pr)
            self.facts[step.pr] = replace(
                self.facts[step.pr], state=PullRequestState.MERGED, merged_sha=step.commit
            )
        return [one for one in super().landed(action) if isinstance(one, Landed)]

    def proved(self, action: Land) -> None:
        """Raise Violation unless all that lands is truly what may land."""
        queue: MergeQueue = self.queue
        if self.unreadable:
            raise Violation("landed while nobody knows what is required")
        if queue.state is QueueState.PAUSED:
            raise Violation("landed in a paused queue")
        if self.target.tip != action.expected_tip:
            raise Violation("landed on a commit that was not tested below it")
        prs = tuple(step.pr for step in action.steps)
        for step in action.steps:
            facts = self.facts[step.pr]
            if facts.head != step.head:
                raise Violation(f"{step.pr} landed without its last push")
            if facts.blockers or facts.state is not PullRequestState.OPEN:
                raise Violation(f"{step.pr} landed against a review")
            if step.pr not in queue.entries:
                raise Violation(f"{step.pr} landed after its cancellation")
        truths = self.truths_of(prs)
        wrong = {name: truths[name] for name in self.names if truths[name] not in MAY_LAND}
        if wrong:
            raise Violation(f"{prs} landed, but {wrong}")

    def seen(self, sha: Sha) -> tuple[Check, ...]:
        """What is said of a commit now."""
        return self.ci.reports(sha)


EVERY_JOB = (World.ci_works,) * 4
"""So often that the jobs of a run end."""

MEANWHILE = (
    *(World.pushes, World.requests_changes, World.moves_target),
    *(World.pauses, World.cancels, World.loses_rules),
)
"""What may happen between the queue's wish to land and the landing."""
