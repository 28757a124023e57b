"""The next step of a program about a pull request, with its words, its evidence and its call.

The API, the command line, the tools for agents and webhooks show this one value
(docs/design/next-steps.md).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b

from service.errors import OverBudget, ServiceError
from service.mergequeue.engine.explaining import next_steps
from service.mergequeue.engine.explaining.next_steps import NextStep
from service.mergequeue.engine.model import Named
from service.mergequeue.engine.outputs import EntryMoved
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state.readiness import blocker_names
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.reasons import refused
from service.mergequeue.reasons.record import StepKind, WhoMustAct
from service.mergequeue.reasons.records import REASONS
from service.mergequeue.wording import conditions, endings, notices, reasons
from service.mergequeue.wording.failed_tests import NONE, FailedTests
from service.mergequeue.wording.notices import Failures
from service.mergequeue.wording.situation import PullRequestText
from service.text import markdown, phrases
from service.text.phrases import Code, Phrase, phrase
from service.vocabulary import RepoRef, Sha

Json = Mapping[str, object]

WAIT_S = 25
"""The seconds for which a read waits that a call of ours asks for."""

TOOL_WAIT_S = 300
"""The same of a tool of agents, which reads again meanwhile."""

VERSION_BYTES = 12

_LEADS: Mapping[StepKind, str] = {
    StepKind.WAIT: "wait until {}",
    StepKind.FIX: "change the pull request so that {}",
    StepKind.REBASE: "rebase it so that {}",
    StepKind.RESUBMIT: "submit it again so that {}",
    StepKind.SUPERSEDED: "close it: it is to be merged only if {}",
    StepKind.DROP: "leave it: it is to be merged only if {}",
    StepKind.ASK: "ask {who} so that {}",
}
"""What an open condition asks for; the condition is a clause that is true once it is met."""

_PARTIES: Mapping[WhoMustAct, str] = {
    WhoMustAct.AUTHOR: "the author",
    WhoMustAct.MAINTAINER: "a maintainer",
    WhoMustAct.OPERATOR: "who operates Headgate",
    WhoMustAct.NOBODY: "a maintainer",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The pull request and the queue that a call names."""

    repo: RepoRef
    branch: str
    number: int


@dataclass(frozen=True, slots=True)
class Call:
    """The next call to Headgate: it submits, or waits for another step than that of `version`.

    `is_known`: the step of this version is no news, though it is not WAIT.
    """

    place: Place
    version: str
    submits: bool
    is_known: bool = False

    @property
    def after(self) -> str:
        """The version that is no news; empty if any step but WAIT is."""
        return self.version if self.is_known else ""

    @property
    def path(self) -> str:
        """The path of the request."""
        return "/v1/submitPullRequest" if self.submits else "/v1/getNextStep"

    @property
    def body(self) -> Json:
        """The body of the request."""
        place = self.place
        repo = {"host": place.repo.host, "owner": place.repo.owner, "name": place.repo.name}
        waits = {} if self.submits else {"sinceVersion": self.version, "waitFor": WAIT_S}
        return {
            "repo": repo,
            "targetBranch": place.branch,
            "pr": {"number": place.number},
            **waits,
        }

    @property
    def tool(self) -> str:
        """The tool of `headgate mcp`."""
        return "land_pull_request" if self.submits else "what_now"

    @property
    def arguments(self) -> Json:
        """The arguments of the tool."""
        place = self.place
        waits = {} if self.submits else {"seconds": TOOL_WAIT_S}
        after = {"after": self.after} if self.after else {}
        repo = f"{place.repo.host}/{place.repo.slug}"
        return {"number": place.number, "repo": repo, **waits, **after}

    @property
    def command(self) -> str:
        """The call as a command line."""
        place, number = self.place, str(self.place.number)
        words = ["land", number, "--no-wait"] if self.submits else ["next", number, "--wait"]
        after = ["--after", self.after] if self.after else []
        where = ["--repo", f"{place.repo.host}/{place.repo.slug}", "--branch", place.branch]
        return shlex.join(["headgate", *words, *after, *where])


@dataclass(frozen=True, slots=True)
class Owner:
    """A pull request with which another one conflicts, and its author."""

    number: int
    author: str
    is_merged: bool


@dataclass(frozen=True, slots=True)
class DescribedStep:
    """A step with its words and its evidence.

    `commit`: of REBASE the one to rebase onto, of DONE the one that landed, of SUPERSEDED the
    landing that has the work. `person` is whom to ask, if that is known. `percent`: how sure it
    is that the pull request broke its tests, if that is believed. `version` changes with the step.
    """

    step: NextStep
    place: Place
    text: str
    version: str = ""
    person: str = ""
    commit: Sha | None = None
    suspects: tuple[int, ...] = ()
    percent: int | None = None
    failures: Failures | None = None
    owners: tuple[Owner, ...] = ()
    call: Call | None = None


def describe(
    view: PullRequestText, repo: RepoRef, owners: Sequence[Owner] = (), on_head: FailedTests = NONE
) -> DescribedStep:
    """Return the next step about a submission.

    `owners`: those of `conflicting` with authors. `on_head`: the tests that failed on its head.
    """
    entry, explained = view.entry, view.explained
    step = next_steps.next_step_of(entry, explained)
    suspicion = explained.suspicion
    branch = entry.detail.text if entry.reason is Reason.BASE_CHANGED else view.queue.branch
    person = entry.canceller if entry.state in FINAL else None
    return _versioned(
        DescribedStep(
            step,
            Place(repo, branch or view.queue.branch, entry.pr),
            _text(step, view),
            person=person.login if person is not None and step.kind is StepKind.ASK else "",
            commit=_commit(step, view),
            suspects=next_steps.suspects_of(entry, explained),
            percent=suspicion.percent if suspicion is not None else None,
            failures=_failures_on_head(view, on_head) or notices.failures_of(view),
            owners=tuple(owners),
        ),
        entry.id,
    )


def conflicting(view: PullRequestText) -> tuple[int, ...]:
    """Return the pull requests with which it conflicts now or was seen to conflict before."""
    step = next_steps.next_step_of(view.entry, view.explained)
    found = list(view.entry.held_by)
    if step.kind is StepKind.REBASE:
        moves = (one.event for one in view.history)
        found += [
            pr
            for move in moves
            if isinstance(move, EntryMoved) and move.reason is Reason.CONFLICT_AHEAD
            for pr in move.detail.prs
        ]
    return tuple(dict.fromkeys(found))


def fails_on_head(view: PullRequestText) -> tuple[str, ...]:
    """Return the required checks that failed on the head itself, where the step is about them."""
    step = next_steps.next_step_of(view.entry, view.explained)
    is_so = step.condition is not None and step.condition.code is Reason.CHECK_FAILING
    return blocker_names(view.entry, Reason.CHECK_FAILING) if is_so else ()


def _failures_on_head(view: PullRequestText, tests: FailedTests) -> Failures | None:
    names = fails_on_head(view)
    if not names:
        return None
    text = "It failed on the head of the pull request itself."
    return Failures(text, tuple(Named(name, "") for name in names), tests)


def never_submitted(place: Place) -> DescribedStep:
    """Return the step about a pull request that no submission exists of."""
    step = NextStep(StepKind.SUBMIT, "never_submitted", WhoMustAct.AUTHOR)
    text = f"Submit it: it was never submitted to the queue for {place.branch}."
    return _versioned(DescribedStep(step, place, text))


def after_refusal(place: Place, error: ServiceError, now: datetime) -> DescribedStep | None:
    """Return the step after a submission was refused; None for an error that is not about it.

    Of the error's members `pull_requests` are those that it names.
    """
    record = REASONS.get(error.code)
    kind = refused.OTHERS.get(error.code) if record is None else record.next
    if kind is None:
        return None
    who = WhoMustAct.NOBODY if record is None else record.who
    pause = timedelta(minutes=0 if record is None else record.pause_min)
    at = error.until if isinstance(error, OverBudget) else None
    prs = error.members.get("pull_requests")
    step = NextStep(
        kind,
        error.code,
        who,
        at=at or (now + pause if pause else None),
        prs=tuple(prs) if isinstance(prs, list) else (),
    )
    return _versioned(DescribedStep(step, place, error.detail))


def _versioned(made: DescribedStep, submission: str = "") -> DescribedStep:
    """Return it with its version and its call, which follow from the rest.

    Words and times that move by themselves do not make another version.
    """
    step, failures = made.step, made.failures
    essence = (
        *(submission, step.kind, step.code, step.prs, step.paths, made.place, made.commit),
        *(made.suspects, failures and failures.text, failures and failures.checks),
    )
    digest = blake2b(repr(essence).encode(), digest_size=VERSION_BYTES).hexdigest()
    return replace(made, version=digest, call=_call(made, digest))


def _call(made: DescribedStep, version: str) -> Call | None:
    """Return the next call to Headgate, after what the step asks for was done."""
    step, place = made.step, made.place
    match step.kind:
        case StepKind.DONE | StepKind.DROP | StepKind.SUPERSEDED:
            return None
        case StepKind.WAIT if step.code == Reason.CONFLICT_AFTER_LANDING and step.prs:
            return Call(replace(place, number=step.prs[-1]), version, submits=True)
        case StepKind.WAIT | StepKind.ASK:
            is_known = step.kind is StepKind.ASK
            return Call(place, version, submits=False, is_known=is_known)
        case _:
            return Call(place, version, submits=True)


def _commit(step: NextStep, view: PullRequestText) -> Sha | None:
    match step.kind:
        case StepKind.DONE:
            return view.entry.landed_sha or view.entry.detail.sha
        case StepKind.SUPERSEDED:
            return view.entry.detail.sha
        case StepKind.REBASE:
            return None if view.queue.tip is None else view.queue.tip.sha
        case _:
            return None


def _text(step: NextStep, view: PullRequestText) -> str:
    """Return what to do, in a sentence or two, without markup."""
    if view.entry.state in FINAL:
        known = view.situation
        ended = phrases.sentence(reasons.explanation(known))
        return markdown.plain(phrases.joined([ended, endings.next_step(known)]))
    if step.condition is None:
        return "Wait: Headgate goes on by itself."
    lead = _LEADS[step.kind].replace("{who}", _PARTIES[step.who])
    clause = conditions.clause(step.condition, view.queue)
    said = markdown.plain(phrases.sentence(phrase(lead, clause)))
    if step.code == Reason.UNDOES_LANDED_WORK and step.paths:
        said = f"{said} {markdown.plain(_bringing_back(step, view))}"
    if view.entry.state in (EntryState.TESTING, EntryState.PENDING_FAILURE):
        return f"{reasons.sentence(view.situation)} {said}"
    return said


def _bringing_back(step: NextStep, view: PullRequestText) -> Phrase:
    """Return where the work is that it would take back, and what to do if no rebase helps."""
    return phrase(
        "The work is in {}. If a rebase does not bring it back, take these files from {} and make "
        "only your own change in them.",
        phrases.names(step.paths),
        Code(view.queue.branch),
    )
