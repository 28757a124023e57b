"""The language of the scenario files: `> verb arguments`, played on a stage.

The first line makes the queue: `queue SINGLE concurrency=2 manual land`. Lines that begin with
`#` are comments. Times are written `+10s`, `+5m`, `+24h`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from service.mergequeue import explain, inputs
from service.mergequeue.config import (
    ConfigValue,
    ConfirmFailures,
    QueueConfig,
    Toggle,
    changed,
)
from service.mergequeue.model import Evidence, Explanation, Facts, RequiredSet
from service.mergequeue.outputs import Recorded
from service.mergequeue.reasons import HoldReason, HoldScope, Reason
from service.mergequeue.states import QueueState
from service.vocabulary import (
    SYSTEM,
    Blocker,
    BlockerCode,
    Channel,
    CheckOutcome,
    Mergeability,
    MergeMethod,
    PullRequestState,
    RequiredName,
    RequiredSource,
    Sha,
)
from tests.mergequeue import timeline, trees
from tests.mergequeue.stage import ALICE, Stage, Told

_TYPES: Mapping[str, Callable[[str], ConfigValue]] = {
    "confirm_failures": ConfirmFailures,
    "direct_merge_mode": Toggle,
    "merge_method": MergeMethod,
    "result_reuse_enabled": lambda word: word == "yes",
    "flaky_knowledge_enabled": lambda word: word == "yes",
}
_SPANS = {"s": "seconds", "m": "minutes", "h": "hours"}


class Script:
    """One scenario while it is played."""

    def __init__(self, first_line: str) -> None:
        words = first_line.split()
        assert words[:2] == ["queue", "SINGLE"], first_line
        flags = [word for word in words[2:] if "=" not in word]
        settings = dict(word.split("=") for word in words[2:] if "=" in word)
        sends_results = settings.pop("evidence", "no") == "yes"
        config = changed(QueueConfig(), {name: _value(name, v) for name, v in settings.items()})
        manual = "manual" in flags
        self.stage = Stage(
            config,
            manual_build=manual and "build" in flags,
            manual_land=manual and "land" in flags,
        )
        self.timeline = timeline.Timeline()
        if sends_results:
            self.stage.tell(inputs.RepositoryChanged(available=True, sends_results=True))

    def play(self, line: str) -> list[str]:
        """One line of input: what it led to."""
        verb, *words = line.split()
        if verb.startswith("+"):
            span = re.fullmatch(r"\+(\d+)([smh])", verb)
            assert span, line
            told: Told | list[str] = self.stage.passes(timedelta(**{_SPANS[span[2]]: int(span[1])}))
        else:
            told = _VERBS[verb](self, words)
        if isinstance(told, list):
            return told
        lines = self.timeline.lines(told.events)
        if told.refusal is not None:
            refused = told.refusal
            lines.append(f'refused {refused.reason.value} "{refused.text}"')
        return lines

    def number(self, word: str) -> int:
        assert word.startswith("r"), word
        return int(word[1:])

    def run_id(self, word: str) -> str:
        return self.stage.runs[self.number(word)]


def _value(name: str, word: str) -> ConfigValue:
    if name in _TYPES:
        return _TYPES[name](word)
    return float(word) if "." in word else int(word)


def _submit(script: Script, words: list[str]) -> Told:
    numbers = [int(word) for word in words if word.isdigit()]
    options: dict[str, object] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key == "p":
            options["priority"] = int(value)
        elif word == "nobatch":
            options["no_batch"] = True
        elif key == "by":
            options["actor"] = replace(ALICE, channel=Channel(value))
    events: list[Recorded] = []
    refusal = None
    for pr in numbers:
        command = script.stage.submit(pr, **options)
        facts = _with_facts(command.facts, words)
        script.stage.facts[pr] = facts
        told = script.stage.tell(replace(command, facts=facts))
        events += told.events
        refusal = refusal or told.refusal
    return Told(tuple(events), refusal)


def _facts(script: Script, words: list[str]) -> Told:
    """Change what the provider says of a pull request: `facts 3 draft base=next`."""
    pr = int(words[0])
    facts = _with_facts(script.stage.facts[pr], words[1:])
    script.stage.facts[pr] = facts
    return script.stage.tell(inputs.FactsChanged(facts))


def _with_facts(facts: Facts, words: list[str]) -> Facts:
    for word in words:
        key, _, value = word.partition("=")
        if key in _FACTS:
            facts = _FACTS[key](facts, value)
    return facts


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
            Blocker(BlockerCode(one.split(":")[0]), one.partition(":")[2] or None)
            for one in value.split(",")
        ),
    ),
    "unblocked": lambda facts, _: replace(facts, blockers=()),
    "fork": lambda facts, _: replace(facts, is_fork=True),
    "authorized": lambda facts, _: replace(facts, authorized_head=facts.head),
    "unauthorized": lambda facts, _: replace(facts, authorized_head=None),
}


def _push(script: Script, words: list[str]) -> Told:
    stage, pr = script.stage, int(words[0])
    stage.versions[pr] += 1
    stage.facts[pr] = replace(stage.facts[pr], head=stage.head(pr))
    return stage.tell(inputs.FactsChanged(stage.facts[pr]))


def _own(script: Script, words: list[str]) -> Told:
    """The pull request's own head contains the tip, with these checks: `own 1 unit=passed`."""
    stage, pr = script.stage, int(words[0])
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


def _pass(script: Script, words: list[str]) -> Told:
    return _report_all(script, words[0], {})


def _fail(script: Script, words: list[str]) -> Told:
    """A check fails, the others pass, and the failure settles."""
    failed = words[1:] or [script.stage.run(script.number(words[0])).required[0].name]
    told = _report_all(script, words[0], dict.fromkeys(failed, CheckOutcome.FAILED))
    after = script.stage.passes(timedelta(seconds=10))
    return Told((*told.events, *after.events), None)


def _report_all(script: Script, word: str, other: Mapping[str, CheckOutcome]) -> Told:
    run = script.stage.run(script.number(word))
    outcomes = {one.name: CheckOutcome.PASSED for one in run.required} | dict(other)
    checks = script.stage.a_report(run.checks, outcomes)
    return script.stage.tell(inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True))


def _report(script: Script, words: list[str]) -> Told:
    """Only these: `report r1 unit=running lint=failed:startup_failure`, `incomplete`, `sha=abc`."""
    run = script.stage.run(script.number(words[0]))
    pairs = [word.partition("=") for word in words[1:] if "=" in word]
    shas = [Sha(value) for name, _, value in pairs if name == "sha"]
    words_of = {name: value.partition(":") for name, _, value in pairs if name != "sha"}
    outcomes = {name: CheckOutcome(word[0]) for name, word in words_of.items()}
    checks = tuple(
        replace(check, raw=words_of[check.name][2])
        if check.name in words_of and words_of[check.name][2]
        else check
        for check in script.stage.a_report(run.checks, outcomes)
    )
    sha = shas[0] if shas else run.sha or Sha("")
    complete = "incomplete" not in words
    return script.stage.tell(inputs.ChecksReported(run.id, sha, checks, complete))


def _evidence(script: Script, words: list[str]) -> Told:
    """`evidence r1 FLAKY`, `evidence r1 unit=BASE_RED lint=FLAKY own=3 print=boom`."""
    run = script.stage.run(script.number(words[0]))
    said = {}
    own: tuple[int, ...] = ()
    fingerprint = None
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "own":
            own = (int(value),)
        elif key == "print":
            fingerprint = value
        elif value:
            said[key] = Explanation(value.lower())
        else:
            failed = [c.name for c in run.checks if c.outcome is CheckOutcome.FAILED]
            said |= dict.fromkeys(failed, Explanation(key.lower()))
    evidence = Evidence(run.attempt, said, fingerprint, own)
    return script.stage.tell(inputs.EvidenceReported(run.id, evidence))


def _conflict(script: Script, words: list[str]) -> Told:
    """`conflict r2 2 with 1`, `with base`, `with unknown`."""
    who = words[3]
    return script.stage.tell(
        inputs.TestBranchConflicted(
            run=script.run_id(words[0]),
            pr=int(words[1]),
            with_base=who == "base",
            culprit=int(who) if who.isdigit() else None,
            paths=("src/a.py",),
        )
    )


def _foreign(script: Script, words: list[str]) -> Told:
    """Somebody pushes: `foreign`, `foreign back`, `foreign same`, `foreign with 1 2`."""
    target = script.stage.target
    prs = tuple(int(word) for word in words if word.isdigit())
    tree = target.tree
    if "back" in words:
        tree = target.commits[-2][1]
    elif "same" not in words:
        tree |= {trees.change_of(pr, script.stage.head(pr)) for pr in prs}
        if not prs or "more" in words:
            tree |= {("foreign", str(len(target.commits)))}
    return script.stage.tell(script.stage.foreign(tree, prs=prs if "silent" not in words else ()))


def _push_after(script: Script, words: list[str]) -> Told:
    """The landing succeeds; before it is told, a push on top of it is read."""
    stage, run_id = script.stage, script.run_id(words[0])
    answers = stage.landed(stage.lands.pop(run_id))
    early = stage.tell(stage.foreign(stage.target.tree | {("foreign", "on top")}))
    late = [stage.tell(answer) for answer in answers]
    return Told((*early.events, *(event for told in late for event in told.events)), None)


def _seen_early(script: Script, words: list[str]) -> Told:
    """The landing succeeds and is seen on the branch before it is told."""
    stage, run_id = script.stage, script.run_id(words[0])
    answers = stage.landed(stage.lands.pop(run_id))
    early = stage.tell(inputs.TargetMoved(stage.target.tip))
    late = [stage.tell(answer) for answer in answers]
    return Told((*early.events, *(event for told in late for event in told.events)), None)


def _rewrite(script: Script, _words: list[str]) -> Told:
    tree = frozenset({("foreign", "rewritten")})
    return script.stage.tell(script.stage.foreign(tree, rewritten=True))


def _set_back(script: Script, _words: list[str]) -> Told:
    """The branch is reset to the commit before its tip."""
    target = script.stage.target
    target.commits.append(target.commits[-2])
    return script.stage.tell(inputs.TargetMoved(target.tip, (), rewritten=True))


def _seen(script: Script, words: list[str]) -> Told:
    """The tip is read: now, or `seen 2` commits ago."""
    commit, tree = script.stage.target.commits[-1 - int(words[0] if words else 0)]
    tip = replace(script.stage.target.tip, sha=commit, tree=trees.tree_id(tree))
    return script.stage.tell(inputs.TargetMoved(tip))


def _gone(script: Script, words: list[str]) -> Told:
    if words[0] == "target":
        return script.stage.tell(inputs.TargetGone())
    return script.stage.tell(inputs.PullRequestGone(int(words[0])))


def _mismatch(script: Script, words: list[str]) -> Told:
    """The landing in flight moved the target, but to another tree: `mismatch r1 unreachable`."""
    stage = script.stage
    run = stage.run(script.number(words[0]))
    reachable = "unreachable" not in words
    if reachable:
        stage.target.move(stage.target.tree | {("foreign", "mixed in")})
    position = stage.lands.pop(run.id).steps[0].position
    return stage.tell(
        inputs.LandingMismatch(run.id, position, reachable, stage.target.tip, "another tree")
    )


def _stop(script: Script, words: list[str]) -> Told:
    run_id = script.run_id(words[0])
    land = script.stage.lands.pop(run_id, None)
    position = land.steps[0].position if land is not None else 1
    code = inputs.LandingStopCode(words[1])
    text = " ".join(words[2:])
    return script.stage.tell(inputs.LandingStopped(run_id, position, code, text))


def _contained(script: Script, words: list[str]) -> Told:
    """What the run tests is in its base already."""
    run = script.stage.run(script.number(words[0]))
    script.stage.contained.update(run.prs)
    return script.stage.tell(inputs.NothingToTest(run.id))


def _refuse(script: Script, words: list[str]) -> Told:
    """The provider refuses a build: `refuse r1 other too many branches`, `refuse r1 workflows`."""
    run = script.stage.run(script.number(words[0]))
    code = inputs.BuildRefusal(words[1])
    pr = run.entries[0].pr if code is inputs.BuildRefusal.WORKFLOWS else None
    return script.stage.tell(inputs.TestBranchRefused(run.id, pr, code, " ".join(words[2:])))


def _hold(script: Script, words: list[str]) -> Told:
    """`hold freeze LAND until=30m`, `hold recovering system`."""
    until = [word.removeprefix("until=") for word in words if word.startswith("until=")]
    scopes = [HoldScope(word) for word in words if word in HoldScope.__members__]
    minutes = int(until[0].rstrip("m")) if until else 0
    return script.stage.tell(
        inputs.PlaceHold(
            reason=HoldReason(words[0]),
            scope=scopes[0] if scopes else None,
            text="look at it",
            actor=SYSTEM if "system" in words else ALICE,
            until=script.stage.now + timedelta(minutes=minutes) if until else None,
        )
    )


def _release(script: Script, words: list[str]) -> Told:
    """Lift the first hold: `release`, `release system`, `release nothing`."""
    stage = script.stage
    hold = "none" if "nothing" in words else stage.queue.holds[0].id
    actor = SYSTEM if "system" in words else ALICE
    return stage.tell(inputs.ReleaseHold(hold, "looked at", actor))


def _require(script: Script, words: list[str]) -> Told:
    """`require unit lint@9`, `require nothing`, `require none-explicitly`, `require unreadable`."""
    if words == ["unreadable"]:
        return script.stage.tell(inputs.RequiredChanged(RequiredSet(), "403"))
    if words == ["nothing"]:
        return script.stage.tell(inputs.RequiredChanged(RequiredSet()))
    names = tuple(
        RequiredName(name, pin or None)
        for name, _, pin in (word.partition("@") for word in words)
        if name != "none-explicitly"
    )
    source = RequiredSource.MERGE_INSTANCE
    return script.stage.tell(inputs.RequiredChanged(RequiredSet(names, source)))


def _repository(script: Script, words: list[str]) -> Told:
    hold = [HoldReason(word) for word in words if word in set(HoldReason)]
    return script.stage.tell(
        inputs.RepositoryChanged(
            available="available" in words,
            hold=hold[0] if hold else None,
            sends_results=script.stage.queue.sends_results,
        )
    )


def _configure(script: Script, words: list[str]) -> Told:
    changes = {name: _value(name, v) for name, _, v in (word.partition("=") for word in words)}
    return script.stage.tell(inputs.Configure(changes, ALICE))


def _explain(script: Script, words: list[str]) -> list[str]:
    pr, stage = int(words[0]), script.stage
    return timeline.explanation(pr, explain.explain(stage.queue, pr, stage.now))


def _revive(script: Script, words: list[str]) -> Told:
    """A report changes under its old id: `revive r1 unit=running`."""
    run = script.stage.run(script.number(words[0]))
    name, _, value = words[1].partition("=")
    checks = tuple(
        replace(check, outcome=CheckOutcome(value)) if check.name == name else check
        for check in run.checks
    )
    return script.stage.tell(inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True))


def _again(script: Script, words: list[str]) -> Told:
    """Newest reports of a run once more."""
    run = script.stage.run(script.number(words[0]))
    return script.stage.tell(
        inputs.ChecksReported(run.id, run.sha or Sha(""), run.checks, run.checks_complete)
    )


_VERBS: Mapping[str, Callable[[Script, list[str]], Told | list[str]]] = {
    "submit": _submit,
    "cancel": lambda script, words: script.stage.tell(
        inputs.Cancel(int(words[0]), Reason((words[1:] or ["user_requested"])[0]), ALICE)
    ),
    "restart": lambda script, words: script.stage.tell(
        inputs.Restart(
            int(words[0]),
            replace(ALICE, channel=Channel.API) if "api" in words else ALICE,
        )
    ),
    "push": _push,
    "facts": _facts,
    "own": _own,
    "state": lambda script, words: script.stage.tell(
        inputs.SetState(QueueState(words[0]), " ".join(words[1:]) or None, ALICE)
    ),
    "hold": _hold,
    "release": _release,
    "configure": _configure,
    "delete": lambda script, _: script.stage.tell(inputs.Delete(ALICE)),
    "build": lambda script, words: script.stage.build(script.run_id(words[0])),
    "land": lambda script, words: script.stage.land(script.run_id(words[0])),
    "pass": _pass,
    "fail": _fail,
    "report": _report,
    "again": _again,
    "revive": _revive,
    "evidence": _evidence,
    "rerun": lambda script, words: script.stage.tell(inputs.RerunRefused(script.run_id(words[1]))),
    "conflict": _conflict,
    "refuse": _refuse,
    "contained": _contained,
    "lose": lambda script, words: script.stage.tell(
        inputs.TestBranchLost(script.run_id(words[0]), "mallory")
    ),
    "foreign": _foreign,
    "rewrite": _rewrite,
    "set-back": _set_back,
    "push-after": _push_after,
    "seen-early": _seen_early,
    "seen": _seen,
    "gone": _gone,
    "mismatch": _mismatch,
    "stop": _stop,
    "advance": lambda script, words: script.stage.tell(
        inputs.AdvanceRefused(script.run_id(words[1]), "no such update")
    ),
    "require": _require,
    "rules": lambda script, _: script.stage.tell(inputs.RulesChanged()),
    "repository": _repository,
    "estimate": lambda script, words: script.stage.tell(
        inputs.EstimateChanged(int(words[0]), float(words[1]))
    ),
    "explain": _explain,
}
