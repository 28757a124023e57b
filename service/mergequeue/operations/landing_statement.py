"""The statement about one landed pull request: a pure function from values to an in-toto Statement.

Its fields are described in docs/reference/landing-evidence.md. What is not known is said so; a
field is never left out because it would look weak.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime

import orjson
from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from service.mergequeue.engine.checked import CheckedName, Ended, checked_of
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry, Proof, Run
from service.mergequeue.engine.outputs import Land, LandStep
from service.mergequeue.engine.replacing import replace
from service.provenance import Proof as FactProof
from service.vocabulary import Actor, QueueRef, Sha

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:headgate:landing:v1"
"""The version grows when a field changes its meaning; new fields may come without that."""

NOT_READ = "not read"
SIGNED_LATER = "Its signature was made after the landing: it waited for a key."
OUR_CLOCK, PROVIDERS_CLOCK, DATABASE_CLOCK = "headgate", "provider", "database"


@dataclass(frozen=True, slots=True)
class LandedStep:
    """A position that landed: its commit and tree, and the commit that the target had before."""

    step: LandStep
    sha: Sha
    tree: Sha
    base: Sha


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The common facts of the statements of one landing.

    `reused` is the run whose result `run` took over. `entries` are the submissions of the run's
    members that are known, by id. `permit_until` is by the database's clock, `now` by ours.
    """

    queue: QueueRef
    action: Land
    run: Run
    reused: Run | None
    entries: Mapping[str, Entry]
    config: QueueConfig
    revision: int
    permit_until: datetime | None
    version: str
    now: datetime


def statement_of(landed: LandedStep, known: Circumstances) -> dict[str, object]:
    """Return the statement about one landed commit."""
    repo = known.queue.repo
    name = f"git+https://{repo.host}/{repo.slug}@refs/heads/{known.queue.branch}"
    checks = _checks(known)
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"gitCommit": str(landed.sha), "gitTree": str(landed.tree)}}
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "headgate": {"version": known.version},
            "repository": {"host": repo.host, "owner": repo.owner, "name": repo.name},
            "branch": known.queue.branch,
            "base": {"gitCommit": str(landed.base)},
            "pullRequest": landed.step.pr,
            "members": [_member(known, landed, at) for at in range(len(known.run.members))],
            "run": _run(known.run),
            "reusedRun": None if known.reused is None else _run(known.reused),
            "required": {
                "source": known.run.required_source,
                "names": [{"name": one.name, "app": one.source_id} for one in known.run.required],
            },
            "checks": [_check(one) for one in checks],
            "landing": _landing(landed, known),
            "settings": {"version": known.revision, "changed": _changed(known.config)},
            "weaknesses": _weaknesses(landed, known, checks),
            "recorded": _time(known.now, OUR_CLOCK),
        },
    }


def signed_later(statement: str, now: datetime) -> bytes:
    """Return a stored statement that is signed only now, maybe by a key younger than itself."""
    found = orjson.loads(statement)
    predicate = found["predicate"]
    predicate["signed"] = _time(now, OUR_CLOCK)
    predicate["weaknesses"].append(SIGNED_LATER)
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS)


def _checks(known: Circumstances) -> tuple[CheckedName, ...]:
    """Return the table of evidence; what an equal tree passed before is in the run it passed in."""
    if known.reused is None:
        return checked_of(known.run)
    before = {one.name: one for one in checked_of(known.reused)}
    return tuple(
        replace(before[one.name], ended=Ended.REUSED)
        if one.reporter is None and one.name in before and before[one.name].ended is Ended.PASSED
        else one
        for one in checked_of(known.run)
    )


def _member(known: Circumstances, landed: LandedStep, at: int) -> dict[str, object]:
    """Describe a pull request that the tested commit contains.

    `consent` is an object, so that more of it can be told later.
    """
    member = known.run.members[at]
    entry = known.entries.get(member.entry)
    return {
        "number": member.pr,
        "head": {"gitCommit": str(member.head)},
        "isTested": at >= len(known.run.base),
        "isSubject": member.entry == landed.step.entry,
        "author": None if entry is None else entry.facts.author,
        "isFork": None if entry is None else entry.facts.is_fork,
        "consent": None
        if entry is None
        else {
            "submittedBy": _actor(entry.submitted_by),
            "submitted": _time(entry.submitted_at, OUR_CLOCK),
            "authorizedForkHead": entry.facts.authorized_head,
        },
        "approvals": _approvals(entry),
    }


def _approvals(entry: Entry | None) -> list[dict[str, object]] | str:
    """Return who approved which head, as read before the landing."""
    if entry is None or entry.facts.approvals is None:
        return NOT_READ
    return [
        {
            "login": one.login,
            "id": one.id,
            "head": None if one.head is None else {"gitCommit": str(one.head)},
            "submitted": None if one.at is None else _time(one.at, PROVIDERS_CLOCK),
        }
        for one in entry.facts.approvals
    ]


def _actor(actor: Actor) -> dict[str, str]:
    return {
        "kind": actor.kind.value,
        "login": actor.login,
        "id": actor.id,
        "channel": actor.channel.value,
    }


def _run(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "number": run.number,
        "kind": run.kind.value,
        "attempt": run.attempt,
        "branch": run.branch,
        "commit": None if run.sha is None else {"gitCommit": str(run.sha)},
        "tree": None if not run.steps else {"gitTree": str(run.steps[-1].tree)},
        "base": {"gitCommit": str(run.base_tip.sha), "gitTree": str(run.base_tip.tree)},
        "steps": [
            {
                "number": step.pr,
                "head": {"gitCommit": str(step.head)},
                "commit": {"gitCommit": str(step.commit)},
                "tree": {"gitTree": str(step.tree)},
                "addsNoCommit": step.contained,
                "resolved": [
                    {"rule": one.rule.value, "paths": list(one.paths)} for one in step.resolved
                ],
            }
            for step in run.steps
        ],
        "created": _time(run.created_at, OUR_CLOCK),
        "finished": None if run.finished_at is None else _time(run.finished_at, OUR_CLOCK),
    }


def _check(one: CheckedName) -> dict[str, object]:
    reporter = one.reporter
    return {
        "name": one.name,
        "outcome": one.ended.value,
        "where": one.place.value,
        "run": one.run,
        "commit": None if one.sha is None else {"gitCommit": str(one.sha)},
        "url": one.url,
        "reporter": None
        if reporter is None
        else {
            "kind": reporter.kind.value,
            "app": reporter.app_id,
            "id": reporter.check_id,
            "attempt": reporter.attempt,
        },
        "because": one.because,
        "excusedTests": list(one.tests),
        "proof": None if one.proof is None else one.proof.value,
    }


def _landing(landed: LandedStep, known: Circumstances) -> dict[str, object]:
    step, action = landed.step, known.action
    tested = step.tested_tree or step.tree
    return {
        "number": action.number,
        "mode": action.mode.value,
        "method": action.method.value,
        "proof": action.proof.value,
        "position": step.position,
        "parentTree": {"gitTree": str(step.parent_tree)},
        "expectedTree": {"gitTree": str(step.tree)},
        "testedTree": {"gitTree": str(tested)},
        "isTestedTree": landed.tree == tested,
        "permitUntil": None
        if known.permit_until is None
        else _time(known.permit_until, DATABASE_CLOCK),
    }


def _changed(config: QueueConfig) -> dict[str, object]:
    """Return the settings in force that differ from the defaults of this version."""
    plain = QueueConfig()
    return {
        to_camel(field.name): to_jsonable_python(value)
        for field in fields(config)
        if (value := getattr(config, field.name)) != getattr(plain, field.name)
    }


def _time(at: datetime, clock: str) -> dict[str, str]:
    return {"at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "clock": clock}


def _weaknesses(
    landed: LandedStep, known: Circumstances, checks: tuple[CheckedName, ...]
) -> list[str]:
    """Return in words what this landing rests on beside passed checks of the landed tree."""
    weak_points = [_weak_check(one) for one in checks if one.ended is not Ended.PASSED]
    if not known.run.required:
        weak_points.append("No check was required.")
    if known.action.proof is Proof.SAME_CHANGE:
        weak_points.append(
            "Others landed while it was tested: the change is the tested one, the tree is not."
        )
    elif landed.tree != (landed.step.tested_tree or landed.step.tree):
        weak_points.append("It was tested together with others; its own tree had no test run.")
    weak_points += [
        f"Conflicts in {', '.join(one.paths)} were resolved by rule {one.rule.value}."
        for step in known.run.steps
        if step.pr == landed.step.pr
        for one in step.resolved
    ]
    weak_points += _weak_settings(known.config)
    weak_points += _weak_approvals(known.entries.get(landed.step.entry))
    return weak_points


def _weak_settings(config: QueueConfig) -> Iterator[str]:
    """Yield what the settings ask of less than the landed tree, or take from anybody."""
    for name in config.head_only_statuses:
        yield f'Check "{name}" is asked of the own heads alone, by the setting headOnlyStatuses.'
    for each in config.status_reporters:
        name, _, reporter = each.rpartition("=")
        if reporter == "any":
            yield f'Check "{name}" counts whoever reports it, by the setting statusReporters.'


def _weak_approvals(entry: Entry | None) -> Iterator[str]:
    if entry is None or entry.facts.approvals is None:
        yield "Who approved it was not read."
        return
    of_others = [one.login for one in entry.facts.approvals if one.head != entry.head]
    if not entry.facts.approvals:
        yield "Nobody with write access has approved it."
    elif len(of_others) == len(entry.facts.approvals):
        yield "Every approval is of another head than the one that landed."


def _weak_check(one: CheckedName) -> str:
    name = f'Check "{one.name}"'
    match one.ended:
        case Ended.EXCUSED:
            proof = one.proof or FactProof.NONE
            return f"{name} failed and was excused, by a proof of kind {proof.value or 'unknown'}."
        case Ended.REUSED:
            return f"{name} passed on an equal tree, in run {one.run}."
        case Ended.SKIPPED:
            return f"{name} was skipped{': ' + one.because if one.because else ''}."
        case Ended.OPTIONAL:
            return f"{name} did not run and is optional by a setting."
        case _:
            return f"{name} counts as {one.ended.value}."
