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
from service.mergequeue.engine.model import MergeQueue, RequiredSet, Run, Tip
from service.mergequeue.engine.outputs import (
    Action,
    AskEvidence,
    BuildTestBranch,
    Land,
    RerunChecks,
    Step,
)
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import Evidence, Facts
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import (
    permits,
    proving,
    repository_files,
    requirements,
    vehicles,
)
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
    Sha,
)
from tests.hostile import truth
from tests.hostile.ci import CI, Ci, Running
from tests.hostile.landings import Landings
from tests.hostile.overrides import Overrides
from tests.hostile.repository import (
    BRANCH,
    REPO,
    Branch,
    Change,
    Files,
    Github,
    Workflow,
    at_once,
    reading_of,
    runtime_of,
)
from tests.hostile.seen import Begun, Read
from tests.hostile.truth import MAY_LAND, Plot, Truth
from tests.mergequeue.stage import ALICE, Stage, facts_of

TURNS = 45
CALM_TURNS = 20
NAMES = ("unit", "integration", "lint")
PULL_REQUESTS_MAX = 3
RULES = Rules(excused_max=20)
PLOTS = {Plot.NONE: 0.5, Plot.FILES: 0.24, Plot.QUARANTINE: 0.13, Plot.PUSHES: 0.13}
"""How many histories have each plot."""


class Violation(AssertionError):
    """Something landed that nothing proves."""


class World(Stage):
    """A queue, CI, pull requests, and a post that loses, delays and repeats."""

    def __init__(self, seed: int, plot: Plot | None = None) -> None:
        super().__init__(QueueConfig(), manual_build=True, manual_land=True)
        chance = self.chance = random.Random(seed)
        drawn = chance.choices([*PLOTS], [*PLOTS.values()])[0]
        self.plot: Plot = plot or drawn
        self.names = tuple(chance.sample(NAMES, chance.choice((1, 2, 2, 3))))
        self.ci = Ci(chance)
        self.branch = Branch()
        self.target = self.branch
        self.github = Github(self.branch, (*NAMES, "late"))
        self.runtime = runtime_of(self.github)
        self.overrides = Overrides()
        self.truths: dict[int, dict[str, Truth]] = {}
        self.changes: dict[int, Change] = {}
        self.landings = Landings(self.branch, chance, self.changes)
        self.begun: dict[str, Begun] = {}
        self.read = Read()
        self.moved: dict[str, Sha] = {}
        self.late: list[Callable[[], Input | list[Input]]] = []
        self.asked: dict[str, AskEvidence] = {}
        self.answered: dict[str, tuple[object, ...]] = {}
        self.unreadable = False
        self.merged: list[int] = []
        self.turns = TURNS
        self._reads_rules()
        self.tell(inputs.RepositoryChanged(available=True, sends_results=True, reruns=True))

    # --- what is true

    def required_names(self) -> frozenset[str]:
        """What must pass: the rules of the branch, and the file of the target as read last."""
        return frozenset((*self.names, *(self.read.settings.required or ())))

    def truths_of(self, prs: tuple[int, ...], base: Workflow) -> dict[str, Truth]:
        """How the required jobs truly end on the tree of these pull requests."""
        names = (*NAMES, "late")
        found = {name: truth.together([self.truths[pr][name] for pr in prs]) for name in names}
        own = [one.workflow for pr in prs if (one := self.changes.get(pr)) and one.workflow]
        for name in (own[-1] if own else base).elsewhere:
            if found[name] not in (Truth.NEVER, Truth.NOT_HERE):
                # A pull request may leave out a job by itself: docs/design/provenance.md 6.
                found[name] = Truth.ELSEWHERE if name in base.elsewhere else Truth.SKIPPED
        return found

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
        if isinstance(action, BuildTestBranch):
            workflow = self.branch.files.get(action.base_tip.sha, Files()).workflow
            self.begun[action.run] = Begun(self.now, self.read.settings.optional, workflow)
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
        self.landings.ambush = None
        if self.plot is Plot.FILES:
            self.looks_at_file()
            self.reads_workflows()
        self._reads_rules()
        for hold in self.queue.holds:
            if hold.reason is HoldReason.LANDING_MISMATCH:
                self.tell(inputs.ReleaseHold(hold.id, "I have looked at it.", ALICE))
        self.tell(inputs.SetState(QueueState.RUNNING, None, ALICE))
        for pr in list(self.queue.entries):
            self.facts[pr] = replace(self.facts[pr], blockers=())
            self._reads_facts(pr)
        left = CALM_TURNS
        while left and self.queue.entries:
            left -= 1
            before = self.queue
            for one in CALM:
                self.now += CALM_STEP
                one(self)
                self._wakes()
            if self._is_still(before):
                left = self._passes_over(left)

    def _is_still(self, before: MergeQueue) -> bool:
        """Whether a turn has changed nothing, and nothing is under way that would."""
        if self.builds or self.lands or self._open_jobs():
            return False
        return self.queue is before or self.queue == before

    def _passes_over(self, left: int) -> int:
        """Leave out turns that would be like the last one; return how many are left.

        Before the time at which it wants to be woken, the engine changes nothing of its own
        accord: its own tests show that.
        """
        turn = CALM_STEP * len(CALM)
        if self.wake_at is None:
            return 0
        alike = min(left, max(0, (self.wake_at - self.now - timedelta(microseconds=1)) // turn))
        self.now += turn * alike
        return left - alike

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
        pr = self.one_of(gone)
        if pr is not None:
            self.tell(inputs.Submit(self.facts[pr], ALICE))

    def _drawn(self) -> dict[str, Truth]:
        """How the jobs of a change end: most often at most one of them not well."""
        names = (*NAMES, "late")
        is_first = self.plot is Plot.FILES and not self.truths
        if is_first or self.plot is Plot.PUSHES:
            return dict.fromkeys(names, Truth.PASSES)
        drawn = {name: self.chance.choice((Truth.PASSES, *sorted(MAY_LAND))) for name in names}
        share, bad = truth.BAD[self.plot]
        if self.chance.random() < share:
            drawn[self.chance.choice(sorted(self.required_names()))] = self.chance.choice(bad)
        return drawn

    def _with_skips(self, pr: int, facts: Facts) -> Facts:
        here = self.branch.now.with_change(self.changes.get(pr)).workflow
        skipped = tuple(
            sorted(
                name
                for name, one in self.truths[pr].items()
                if one is Truth.SKIPPED
                or (name in here.elsewhere and one not in (Truth.NEVER, Truth.NOT_HERE))
            )
        )
        return replace(facts, own_skipped=skipped)

    def pushes(self) -> None:
        """An author pushes; the delivery comes later, or never."""
        pr = self.one_of(self.queue.entries)
        if pr is not None:
            self.pushes_to(pr)

    def pushes_to(self, pr: int, change: Change | None = None) -> None:
        """An author pushes to this pull request, and changes some of the files with it."""
        self.versions[pr] = self.versions.get(pr, 1) + 1
        self.truths[pr] = self._drawn()
        fresh = facts_of(pr, self.versions[pr])
        if change is not None:
            self.changes[pr] = change
        if pr in self.changes:
            self.github.heads[fresh.head] = self.branch.now.with_change(self.changes[pr])
        self.facts[pr] = self._with_skips(pr, fresh)
        self._mails(lambda: inputs.FactsChanged(self.facts[pr]))

    def requests_changes(self) -> None:
        pr = self.one_of(self.queue.entries)
        if pr is None:
            return
        blocked = self.facts[pr].blockers
        wants = () if blocked else (Blocker(BlockerCode.CHANGES_REQUESTED, None),)
        self.facts[pr] = replace(self.facts[pr], blockers=wants)
        self._mails(lambda: inputs.FactsChanged(self.facts[pr]))

    def cancels(self) -> None:
        pr = self.one_of(self.queue.entries)
        if pr is not None:
            self.tell(inputs.Cancel(pr, Reason.USER_REQUESTED, ALICE))

    def moves_target(self, change: Change | None = None) -> None:
        """Somebody pushes to the target; the queue hears of it later."""
        self.target.move(self.target.tree | {("foreign", str(self.ci.number()))})
        self.branch.change(change)
        self._mails(lambda: inputs.TargetMoved(self.target.tip))

    def loses_rules(self) -> None:
        """The rules of the branch cannot be read for a while."""
        self.unreadable = not self.unreadable
        self._reads_rules()

    def requires_more(self) -> None:
        """An administrator requires another check."""
        if "late" not in self.names:
            self.names = (*self.names, "late")
            self._mails(self._rules)

    def pauses(self) -> None:
        paused = self.queue.state is QueueState.PAUSED
        state = QueueState.RUNNING if paused else QueueState.PAUSED
        self.tell(inputs.SetState(state, None if paused else "a pause", ALICE))

    def _rules(self) -> list[Input]:
        """What is required, as it is read now by the rules and the known file, if it is new."""
        names = tuple(RequiredName(name, CI, CheckKind.SUITE_RUN) for name in self.names)
        self.github.required_names, self.github.is_unreadable = names, self.unreadable
        override = requirements.override_of(self.queue)
        resolved = at_once(requirements.resolve(self.runtime, REPO, BRANCH, override))
        bound = replace(resolved, required=_bound(resolved.required))
        return requirements.reports(self.queue, bound)

    def _reads_rules(self) -> None:
        for one in self._rules():
            self.tell(one)

    def _reads_facts(self, pr: int) -> None:
        entry = self.queue.entries.get(pr)
        if entry is None or entry.facts != self.facts[pr]:
            self.tell(inputs.FactsChanged(self.facts[pr]))

    def _reads_target(self) -> None:
        if self.queue.tip != self.target.tip or self.queue.kept_move is not None:
            self.tell(inputs.TargetMoved(self.target.tip))

    # --- files of the target branch

    def looks_at_file(self) -> None:
        """Read the repository's file, once for each commit (`repository_files.look`)."""
        if self.target.tip.sha == self.read.looked_at:
            return
        self.read.look(self.branch)
        reading, value = reading_of(self.runtime, self.target.tip.sha), self.queue
        known = value.file
        if (known is None and not reading.exists) or (known and known.digest == reading.digest):
            return
        settings = None if reading.faults else reading.settings
        file = repository_files.file_of(reading, known)
        self.tell(inputs.RepositoryFileRead(file, settings))
        self._reads_rules()

    def reads_workflows(self) -> None:
        """Read the workflow files, after a push that has changed them."""
        tip = self.target.tip.sha
        choice = at_once(vehicles.choose(self.runtime, REPO, BRANCH, tip, None))
        workflow = self.branch.now.workflow
        if choice.wants_drafts is workflow.on_push:
            raise Violation("the kind of test branches is not by the files of the target")
        self.read.read_workflow(workflow, self.now)
        self.tell(inputs.WorkflowsChanged(choice.never))

    # --- CI and the post

    def makes_branches(self) -> None:
        for run in list(self.builds):
            action = self.builds[run]
            prs = tuple(step.pr for step in action.steps)
            self.build(run)
            made = self.queue.runs.get(run)
            if made is not None and made.sha is not None and prs:
                self.ci.begin(made.sha, self.truths_of(prs, self.begun[run].workflow))

    def ci_works(self) -> None:
        """Jobs begin and end."""
        waiting = self._open_jobs()
        if not waiting:
            return
        sha, job = self.chance.choice(waiting)
        if self.chance.random() < 0.3:
            self.ci.starts(sha, job)
        else:
            self.ci.ends(sha, job)

    def _open_jobs(self) -> list[tuple[Sha, Running]]:
        return [
            (sha, job)
            for run in self.live()
            if (sha := run.sha) is not None
            for job in self.ci.jobs[sha]
            if not job.is_over
        ]

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
            found = self.late.pop(self.chance.randrange(len(self.late)))()
            told = found if isinstance(found, list) else [found]
            for one in (*told, *(told if self.chance.random() < 0.2 else ())):
                self.tell(one)

    def _reads_run(self, run: Run) -> None:
        sha = self.moved.get(run.id, run.sha or Sha(""))
        reports = self.ci.reports(sha)
        # The engine takes no notice of what it knows.
        if sha != run.sha or reports != run.checks or not run.checks_complete:
            self.tell(inputs.ChecksReported(run.id, sha, reports, True))

    def _mails(self, one: Callable[[], Input | list[Input]]) -> None:
        if self.chance.random() < 0.7:
            self.late.append(one)

    def one_of(self, prs: Iterable[int]) -> int | None:
        """One of these pull requests, if there are any."""
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
            tests=tuple(
                truth.a_test(name, test, was_quarantined=self._was_quarantined(run, name, test))
                for test in failed
            ),
            reports=(truth.report_of(name, uploads, conclusions[name]),),
        )

    def _was_quarantined(self, run: Run, name: str, test: str) -> bool:
        return self.overrides.quarantines(truth.id_of(name, test), run.created_at)

    # --- landing

    def lands_now(self) -> None:
        for run in list(self.lands):
            action = self.lands.pop(run)
            # An effect may be carried out late.
            if self.chance.random() < 0.3:
                self.turn(MEANWHILE)
            self._last_look(action)
            if permits.against(self.queue, action, self.now, self.queue.config.rules) is not None:
                stop = inputs.LandingStopCode.STALE
                self.tell(inputs.LandingStopped(run, action.steps[0].position, stop, "stale"))
                continue
            self.proved(action)
            for answer in self.landed(action):
                self.tell(answer)

    def _last_look(self, action: Land) -> None:
        """Everything is read again that the landing depends on."""
        for step in action.steps:
            self._reads_facts(step.pr)
        self._reads_target()
        self._reads_rules()
        run = self.queue.runs.get(action.run)
        if run is not None:
            self._reads_run(run)
            fresh = self.queue.runs.get(action.run)
            if fresh is not None and fresh.sha is not None:
                self._explains_run(fresh)

    def landed(self, action: Land) -> list[Input]:
        """The provider lands it, or somebody lands something in its place, and it is proved."""
        merged = self.landings.land(action)
        for step in action.steps:
            self.merged.append(step.pr)
            self.facts[step.pr] = replace(
                self.facts[step.pr], state=PullRequestState.MERGED, merged_sha=merged.commit
            )
        outcome = proving.proof_of(action, merged)
        if isinstance(outcome, proving.Unproved):
            if self.landings.is_true(action, merged.commit):
                raise Violation(f"{merged.commit} is as it was tested, but {outcome.text}")
            positions = tuple(step.position for step in action.steps)
            why = f"{outcome.cause}: {outcome.text}"
            tip = self.target.tip
            return [inputs.LandingMismatch(action.run, positions[0], positions, tip, why)]
        if not self.landings.is_true(action, merged.commit):
            raise Violation(f"{merged.commit} is called landed, which nobody has tested")
        self._note_ran(action)
        told: list[Input] = [
            Landed(action.run, step.position, sha, tree) for step, sha, tree in outcome.landed
        ]
        above = outcome.above
        return told if above is None else [*told, inputs.TargetMoved(Tip(above.sha, above.tree))]

    def _note_ran(self, action: Land) -> None:
        begun = self.begun[self._built_for(action.run)]
        found = self.truths_of(tuple(step.pr for step in action.steps), begun.workflow)
        self.read.note_ran({name for name in found if found[name] in truth.RAN}, begun.at)

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
        begun = self._begun_of(action.run)
        on_heads = frozenset.intersection(*(frozenset(self.facts[pr].own_skipped) for pr in prs))
        truths = self.truths_of(prs, begun[0].workflow)
        wrong = {
            name: truths[name]
            for name in sorted(self.required_names())
            if not any(self._may_land(name, truths[name], one, on_heads) for one in begun)
        }
        if wrong:
            raise Violation(f"{prs} landed, but {wrong}")

    def _begun_of(self, run: str) -> list[Begun]:
        """How a run began, and those whose results it has taken over."""
        found = [self.begun[self._built_for(run)]]
        known = self.queue.runs.get(run)
        while known is not None and known.reused_from is not None:
            run = known.reused_from
            found.append(self.begun[self._built_for(run)])
            known = self.queue.runs.get(run)
        return found

    def _built_for(self, run: str) -> str:
        """The run for which the test branch was built: another one if this one repeats it."""
        known = self.queue.runs.get(run)
        return run if known is None or known.repeats is None else known.repeats

    def _may_land(self, name: str, one: Truth, begun: Begun, on_heads: frozenset[str]) -> bool:
        """Whether a landing may rest on this truth of a required job.

        `on_heads` were skipped on the heads as well, if by an earlier workflow file.
        """
        if one in truth.FAILED_TESTS:
            tests = [truth.id_of(name, test) for test in truth.FAILED_TESTS[one]]
            return all(self.overrides.is_quarantined(test, begun.at) for test in tests)
        if one in (Truth.SKIPPED_HERE, Truth.ELSEWHERE):
            is_skipped = one is Truth.ELSEWHERE or name in on_heads
            return name in begun.optional or (is_skipped and self.read.may_skip(name))
        return one in MAY_LAND

    def seen(self, sha: Sha) -> tuple[Check, ...]:
        """What is said of a commit now."""
        return self.ci.reports(sha)


def _bound(required: RequiredSet) -> RequiredSet:
    """Names of the file with whose reports count, as was learned (`reporters.py`)."""
    names = [replace(one, source_id=CI, kind=CheckKind.SUITE_RUN) for one in required.names]
    return replace(required, names=tuple(names))


EVERY_JOB = (World.ci_works,) * 4
"""So often that the jobs of a run end."""

CALM = (World.makes_branches, *EVERY_JOB, World.reads, World.explains, World.lands_now)
CALM_STEP = timedelta(seconds=20)

MEANWHILE = (
    *(World.pushes, World.requests_changes, World.moves_target),
    *(World.pauses, World.cancels, World.loses_rules),
)
"""What may happen between the queue's wish to land and the landing."""
