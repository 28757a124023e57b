"""The verbs of the scenario language: what people ask of a queue and do to their pull requests.

What CI, the target branch and the provider report stands in `reporting.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from service.landed_work import Declaration
from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import NOT_RULED, RuleWait, Seen, Span
from service.mergequeue.engine.states import QueueState
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import (
    SYSTEM,
    Blocker,
    BlockerCode,
    Channel,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    Sha,
)
from tests.mergequeue import reporting, timeline, trees
from tests.mergequeue.reporting import Verb
from tests.mergequeue.stage import ALICE, START, Stage, Told, together
from tests.mergequeue.words import settings_of, targets_of, values_of


def _submit(stage: Stage, words: list[str]) -> Told:
    """`submit 1 2 p=0 nobatch t=a,b head=2 risk=0.3 by=API`, and facts as in `facts`.

    `undoing=1`: it takes back 1, once that is there. `twin=1`: it has the work of 1.
    `declares=1,2`: it takes them back on purpose.
    """
    values, options = values_of(words), _options(words)
    told = []
    for pr in (int(word) for word in words if word.isdigit()):
        if "head" in values:
            stage.versions[pr] = int(values["head"])
        for name, planned in (("undoing", stage.undoing), ("twin", stage.twins)):
            if name in values:
                planned[pr] = int(values[name])
        command = stage.submit(pr, **options)
        facts = _with_facts(command.facts, words)
        stage.facts[pr] = facts
        told.append(stage.tell(replace(command, facts=facts)))
    return together(told)


def _options(words: list[str]) -> dict[str, object]:
    values = values_of(words)
    options: dict[str, object] = {}
    if "p" in values:
        options["priority"] = int(values["p"])
    if "nobatch" in words:
        options["no_batch"] = True
    if "t" in values:
        options["targets"] = targets_of(values["t"])
    if "risk" in values:
        options["p_fail"] = float(values["risk"])
    if "by" in values:
        options["actor"] = replace(ALICE, channel=Channel(values["by"]))
    if "declares" in values:
        options["undoes"] = tuple(f"#{pr}" for pr in values["declares"].split(","))
    return options


def _stack(stage: Stage, words: list[str]) -> Told:
    """One command submits a stack, from the bottom up: `stack 1 2 3`; `closed=2` is closed."""
    numbers = [int(word) for word in words if word.isdigit()]
    closed = values_of(words).get("closed")
    commands: list[inputs.Submit] = []
    for place, pr in enumerate(numbers):
        command, below = stage.submit(pr), " ".join(map(str, numbers[:place]))
        facts = replace(command.facts, in_stack=True)
        if below:
            blockers = (Blocker(BlockerCode.STACKED, below),)
            facts = replace(facts, base=f"part-{numbers[place - 1]}", blockers=blockers)
        stage.facts[pr] = facts
        if str(pr) == closed:
            facts = replace(facts, state=PullRequestState.CLOSED)
        commands.append(replace(command, facts=facts))
    *lower, top = commands
    return stage.tell(replace(top, below=tuple(lower)))


def _facts(stage: Stage, words: list[str]) -> Told:
    """Change what the provider says of a pull request: `facts 3 draft base=next`."""
    pr = int(words[0])
    facts = _with_facts(stage.facts[pr], words[1:])
    stage.facts[pr] = facts
    return stage.tell(inputs.FactsChanged(facts))


def _judge(stage: Stage, words: list[str]) -> Told:
    """The tip has moved, and what a pull request takes back is judged anew: `judge 2`."""
    pr = int(words[0])
    work = stage.judged(pr, stage.target.tip.sha, stage.target.tree)
    assert work is not None
    return stage.tell(inputs.LandedWorkJudged(pr, work))


def _with_facts(facts: Facts, words: list[str]) -> Facts:
    for word in words:
        key, _, value = word.partition("=")
        if key in _FACTS:
            facts = _FACTS[key](facts, value)
    return facts


SEEN = Seen(0, "", "alice", "work", "main", (), (), draft=False, fork=False, auto_merge=False)


def _minute(word: str) -> datetime:
    return START + timedelta(minutes=int(word))


def _ruled(facts: Facts, value: str) -> Facts:
    """It waits for a rule: `rule=reviews`, or from and to minutes: `rule=freeze:30-90,100-110`."""
    name, _, period = value.partition(":")
    spans = tuple(
        Span(*map(_minute, one.split("-"))) for one in (period.split(",") if period else ())
    )
    wait = RuleWait(name, f"the end of {name}", spans or None)
    return replace(facts, ruled=replace(facts.ruled, waits=(*facts.ruled.waits, wait)))


_FACTS: Mapping[str, Callable[[Facts, str], Facts]] = {
    "draft": lambda facts, _: replace(facts, draft=True),
    "undraft": lambda facts, _: replace(facts, draft=False),
    "base": lambda facts, value: replace(facts, base=value),
    "closed": lambda facts, _: replace(facts, state=PullRequestState.CLOSED),
    "merged": lambda facts, value: replace(
        facts, state=PullRequestState.MERGED, merged_sha=Sha(value) if value else None
    ),
    "open": lambda facts, _: replace(facts, state=PullRequestState.OPEN),
    "mergeable": lambda facts, value: replace(facts, mergeability=Mergeability(value)),
    "blocked": lambda facts, value: replace(
        facts,
        blockers=tuple(
            Blocker(BlockerCode(one.split(":")[0]), one.partition(":")[2].replace("+", " ") or None)
            for one in value.split(",")
        ),
    ),
    "skipped": lambda facts, value: replace(facts, own_skipped=_names(value)),
    "failing": lambda facts, value: replace(facts, own_failed=_names(value)),
    "minutes": lambda facts, value: replace(facts, own_minutes=float(value)),
    "unblocked": lambda facts, _: replace(facts, blockers=()),
    "fork": lambda facts, _: replace(facts, is_fork=True),
    "authorized": lambda facts, _: replace(facts, authorized_head=facts.head),
    "declared": lambda facts, value: replace(
        facts, declared=Declaration(numbers=frozenset(int(one) for one in value.split(",") if one))
    ),
    "stack": lambda facts, _: replace(facts, in_stack=True),
    "rule": _ruled,
    "unruled": lambda facts, _: replace(facts, ruled=NOT_RULED),
    "ranked": lambda facts, value: replace(
        facts, ruled=replace(facts.ruled, priority=int(value), priority_rule="hotfix")
    ),
    "unranked": lambda facts, _: replace(
        facts, ruled=replace(facts.ruled, priority=None, priority_rule="")
    ),
    "notbefore": lambda facts, value: replace(
        facts, seen=replace(SEEN, not_before=_minute(value) if value else None)
    ),
    "unauthorized": lambda facts, _: replace(facts, authorized_head=None),
}


def _names(value: str) -> tuple[str, ...]:
    """`skipped=unit,lint`; `skipped=` for none."""
    return tuple(name for name in value.split(",") if name)


def _push(stage: Stage, words: list[str]) -> Told:
    pr = int(words[0])
    stage.versions[pr] += 1
    stage.facts[pr] = replace(stage.facts[pr], head=stage.head(pr))
    return stage.tell(inputs.FactsChanged(stage.facts[pr]))


def _own(stage: Stage, words: list[str]) -> Told:
    """The pull request's own head contains the tip, with these checks: `own 1 unit=passed`."""
    pr = int(words[0])
    outcomes = {name: CheckOutcome(v) for name, _, v in (w.partition("=") for w in words[1:])}
    tree = stage.target.tree | {trees.change_of(pr, stage.head(pr))}
    command = stage.submit(pr)
    facts = replace(
        command.facts,
        own_checks=tuple(
            replace(check, id=f"9{check.id}") for check in stage.a_report((), outcomes)
        ),
        contains_tip=stage.target.tip.sha,
        head_tree=trees.tree_id(tree),
    )
    stage.facts[pr] = facts
    return stage.tell(inputs.FactsChanged(facts))


def _hold(stage: Stage, words: list[str]) -> Told:
    """`hold freeze LAND until=30m`, `hold recovering system`."""
    until = [word.removeprefix("until=") for word in words if word.startswith("until=")]
    scopes = [HoldScope(word) for word in words if word in HoldScope.__members__]
    minutes = int(until[0].rstrip("m")) if until else 0
    return stage.tell(
        inputs.PlaceHold(
            reason=HoldReason(words[0]),
            scope=scopes[0] if scopes else None,
            text="look at it",
            actor=SYSTEM if "system" in words else ALICE,
            until=stage.now + timedelta(minutes=minutes) if until else None,
        )
    )


def _release(stage: Stage, words: list[str]) -> Told:
    """Lift the first hold: `release`, `release system`, `release nothing`."""
    hold = "none" if "nothing" in words else stage.queue.holds[0].id
    actor = SYSTEM if "system" in words else ALICE
    return stage.tell(inputs.ReleaseHold(hold, "looked at", actor))


def _targets(stage: Stage, words: list[str]) -> Told:
    """`targets 1 a,b`, `targets 1 ALL`; `head=2` uploads for another head."""
    pr, head = int(words[0]), values_of(words).get("head")
    sha = stage.head(pr) if head is None else trees.head_of(pr, int(head))
    return stage.tell(inputs.SetImpactedTargets(pr, sha, targets_of(words[1]), ALICE))


def _cancel(stage: Stage, words: list[str]) -> Told:
    code = Reason((words[1:] or ["user_requested"])[0])
    return stage.tell(inputs.Cancel(int(words[0]), code, ALICE))


def _restart(stage: Stage, words: list[str]) -> Told:
    actor = replace(ALICE, channel=Channel.API) if "api" in words else ALICE
    return stage.tell(inputs.Restart(int(words[0]), actor))


def _state(stage: Stage, words: list[str]) -> Told:
    why = " ".join(words[1:]) or None
    return stage.tell(inputs.SetState(QueueState(words[0]), why, ALICE))


def _explain(stage: Stage, words: list[str]) -> list[str]:
    pr = int(words[0])
    return timeline.explanation(pr, explain.explain(stage.queue, pr, stage.now))


def _estimate(stage: Stage, words: list[str]) -> Told:
    return stage.tell(inputs.EstimateChanged(int(words[0]), float(words[1])))


def _rates(stage: Stage, words: list[str]) -> Told:
    """`rates flake=0.05 conflict=0.1 foreseen=0 unit=20`: measured; minutes of checks by name."""
    said = {name: float(value) for name, value in values_of(words).items()}
    known = stage.queue.rates
    flake = said.pop("flake", known.flake)
    conflict = said.pop("conflict", known.conflict)
    foreseen = said.pop("foreseen", known.foreseen)
    minutes = {**known.minutes, **said}
    return stage.tell(inputs.RatesMeasured(flake, conflict, minutes, foreseen))


VERBS: Mapping[str, Verb] = {
    **reporting.VERBS,
    "submit": _submit,
    "stack": _stack,
    "cancel": _cancel,
    "restart": _restart,
    "push": _push,
    "facts": _facts,
    "judge": _judge,
    "own": _own,
    "targets": _targets,
    "estimate": _estimate,
    "rates": _rates,
    "state": _state,
    "mode": lambda stage, words: stage.tell(inputs.Configure({"mode": Mode(words[0])}, ALICE)),
    "configure": lambda stage, words: stage.tell(inputs.Configure(settings_of(words), ALICE)),
    "hold": _hold,
    "release": _release,
    "delete": lambda stage, _: stage.tell(inputs.Delete(ALICE)),
    "explain": _explain,
}
"""Every verb of the language, those of `reporting.py` among them."""
