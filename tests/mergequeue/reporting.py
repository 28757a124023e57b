"""The verbs of the scenario language: what CI, the target branch and the provider report."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from service.mergequeue.engine import inputs
from service.mergequeue.engine.model import RequiredSet
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.reported import CheckHistory, Doomed, Evidence
from service.vocabulary import CheckOutcome, Explanation, RequiredName, RequiredSource, Sha
from tests.mergequeue import trees
from tests.mergequeue.stage import Stage, Told, together
from tests.mergequeue.words import number_of, targets_of, values_of

Verb = Callable[[Stage, list[str]], Told | list[str]]
"""Plays one input: its events and refusal, or lines to write down as they are."""


def _pass(stage: Stage, words: list[str]) -> Told:
    return _report_all(stage, words[0], {})


def _fail(stage: Stage, words: list[str]) -> Told:
    """A check fails, the others pass, and the failure settles."""
    failed = words[1:] or [stage.run(number_of(words[0])).required[0].name]
    told = _report_all(stage, words[0], dict.fromkeys(failed, CheckOutcome.FAILED))
    return together([told, stage.passes(timedelta(seconds=10))])


def _report_all(stage: Stage, word: str, other: Mapping[str, CheckOutcome]) -> Told:
    run = stage.run(number_of(word))
    outcomes = {one.name: CheckOutcome.PASSED for one in run.required} | dict(other)
    checks = stage.a_report(run.checks, outcomes)
    return stage.tell(inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True))


def _report(stage: Stage, words: list[str]) -> Told:
    """Only these: `report r1 unit=running lint=failed:startup_failure`, `incomplete`, `sha=abc`."""
    run = stage.run(number_of(words[0]))
    pairs = [word.partition("=") for word in words[1:] if "=" in word]
    shas = [Sha(value) for name, _, value in pairs if name == "sha"]
    words_of = {name: value.partition(":") for name, _, value in pairs if name != "sha"}
    outcomes = {name: CheckOutcome(word[0]) for name, word in words_of.items()}
    checks = tuple(
        replace(check, raw=words_of[check.name][2])
        if check.name in words_of and words_of[check.name][2]
        else check
        for check in stage.a_report(run.checks, outcomes)
    )
    sha = shas[0] if shas else run.sha or Sha("")
    complete = "incomplete" not in words
    return stage.tell(inputs.ChecksReported(run.id, sha, checks, complete))


def _evidence(stage: Stage, words: list[str]) -> Told:
    """`evidence r1 FLAKY`, `evidence r1 unit=BASE_RED own=3,4 print=boom w=2:5,3:0.5`.

    `own` are pull requests whose own head fails the same tests, `w` weighs suspicion.
    `tests=unit:t1,t2` names all tests that failed in a check; each needs a cause.
    """
    run = stage.run(number_of(words[0]))
    values = dict(values_of(words[1:]))
    own = values.pop("own", "")
    weights = values.pop("w", "")
    fingerprint = values.pop("print", None)
    check, _, names = values.pop("tests", "").partition(":")
    tests = tuple(names.split(",")) if names else ()
    said = {name: Explanation(value.lower()) for name, value in values.items()}
    for word in (word for word in words[1:] if "=" not in word):
        failed = [c.name for c in run.checks if c.outcome is CheckOutcome.FAILED]
        said |= dict.fromkeys(failed, Explanation(word.lower()))
    evidence = Evidence(
        attempt=run.attempt,
        explanations=said,
        fingerprint=fingerprint,
        own_head=tuple(int(pr) for pr in own.split(",") if pr),
        weights={
            int(pr): float(weight)
            for pr, _, weight in (each.partition(":") for each in weights.split(",") if each)
        },
        failed_tests={check: tests} if tests else {},
        unexplained_tests=tests,
    )
    return stage.tell(inputs.EvidenceReported(run.id, evidence))


def _revoke(stage: Stage, words: list[str]) -> Told:
    """`revoke r1`, `revoke r1 unit`: passed checks that count as failed; all, or those named."""
    run = stage.run(number_of(words[0]))
    ids = tuple(check.id for check in run.checks if check.name in words[1:] or not words[1:])
    return stage.tell(inputs.PassRevoked(run.id, ids))


def _doom(stage: Stage, words: list[str]) -> Told:
    """`doom r1 unit`, `doom r1 unit=leg`, `doom r1 unit attempt=1`, `doom r1 unit step=Test`.

    All required checks that cannot pass any more, each by a job; none take all back.
    """
    run = stage.run(number_of(words[0]))
    pairs = [word.partition("=") for word in words[1:]]
    values = {name: value for name, _, value in pairs if name in ("attempt", "step", "test")}
    by_name = {check.name: check.id for check in run.checks}
    dooms = tuple(
        Doomed(
            name,
            job or name,
            by_name.get(job or name, f"9{place}"),
            "g1",
            step=values.get("step", ""),
            test=values.get("test", ""),
            url=f"https://ci.example/{job or name}",
        )
        for place, (name, _, job) in enumerate(pairs)
        if name not in values
    )
    attempt = int(values.get("attempt", run.attempt))
    return stage.tell(inputs.FailureForeseen(run.id, attempt, dooms))


def _conflict(stage: Stage, words: list[str]) -> Told:
    """`conflict r2 2 with 1`, `with base`, `with unknown`."""
    who = words[3]
    return stage.tell(
        inputs.TestBranchConflicted(
            run=_run_of(stage, words),
            pr=int(words[1]),
            with_base=who == "base",
            culprit=int(who) if who.isdigit() else None,
            paths=("src/a.py",),
        )
    )


def _foreign(stage: Stage, words: list[str]) -> Told:
    """Somebody pushes: `foreign`, `foreign back`, `foreign same`, `foreign with 1 2`, `t=a,b`.

    `ours`: our own App landed them, and the queue has no record of it.
    """
    target = stage.target
    prs = tuple(int(word) for word in words if word.isdigit())
    tree = target.tree
    if "back" in words:
        tree = target.commits[-2][1]
    elif "same" not in words:
        tree |= {trees.change_of(pr, stage.head(pr)) for pr in prs}
        if not prs or "more" in words:
            tree |= {("foreign", str(len(target.commits)))}
    told = "silent" not in words
    touched = values_of(words).get("t")
    return stage.tell(
        replace(
            stage.foreign(tree, prs=prs if told else ()),
            targets=None if touched is None else targets_of(touched),
            ours=tuple((pr, target.tip.sha) for pr in prs) if "ours" in words else (),
        )
    )


def _push_after(stage: Stage, words: list[str]) -> Told:
    """The landing succeeds; before it is told, a push on top of it is read."""
    run_id = _run_of(stage, words)
    answers = stage.landed(stage.lands.pop(run_id))
    early = stage.tell(stage.foreign(stage.target.tree | {("foreign", "on top")}))
    return together([early, *(stage.tell(answer) for answer in answers)])


def _seen_early(stage: Stage, words: list[str]) -> Told:
    """The landing succeeds and is seen on the branch before it is told."""
    run_id = _run_of(stage, words)
    answers = stage.landed(stage.lands.pop(run_id))
    early = stage.tell(inputs.TargetMoved(stage.target.tip))
    return together([early, *(stage.tell(answer) for answer in answers)])


def _rewrite(stage: Stage, _words: list[str]) -> Told:
    tree = frozenset({("foreign", "rewritten")})
    return stage.tell(stage.foreign(tree, rewritten=True))


def _set_back(stage: Stage, _words: list[str]) -> Told:
    """The branch is reset to the commit before its tip."""
    target = stage.target
    target.commits.append(target.commits[-2])
    return stage.tell(inputs.TargetMoved(target.tip, (), rewritten=True))


def _seen(stage: Stage, words: list[str]) -> Told:
    """The tip is read: now, or `seen 2` commits ago."""
    commit, tree = stage.target.commits[-1 - int(words[0] if words else 0)]
    tip = replace(stage.target.tip, sha=commit, tree=trees.tree_id(tree))
    return stage.tell(inputs.TargetMoved(tip))


def _gone(stage: Stage, words: list[str]) -> Told:
    if words[0] == "target":
        return stage.tell(inputs.TargetGone())
    return stage.tell(inputs.PullRequestGone(int(words[0])))


def _mismatch(stage: Stage, words: list[str]) -> Told:
    """The landing in flight moved the target, but to another tree: `mismatch r1 unreachable`."""
    run_id = _run_of(stage, words)
    action = stage.lands.pop(run_id)
    landed = () if "unreachable" in words else tuple(step.position for step in action.steps)
    if landed:
        stage.target.move(stage.target.tree | {("foreign", "mixed in")})
    position = _landing_position(stage)
    return stage.tell(
        inputs.LandingMismatch(run_id, position, landed, stage.target.tip, "another tree")
    )


def _stop(stage: Stage, words: list[str]) -> Told:
    """The first position of the landing in flight is refused: `stop r1 closed`."""
    run_id = _run_of(stage, words)
    stage.lands.pop(run_id, None)
    code = inputs.LandingStopCode(words[1])
    position = _landing_position(stage)
    return stage.tell(inputs.LandingStopped(run_id, position, code, " ".join(words[2:])))


def _landing_position(stage: Stage) -> int:
    landing = stage.queue.landing
    return 1 if landing is None else landing.positions[0]


def _contained(stage: Stage, words: list[str]) -> Told:
    """What the run tests is in its base already: `contained r2`; of `contained 2` builds say so."""
    if words[0].isdigit():
        stage.contained.update(int(word) for word in words)
        return together([])
    run = stage.run(number_of(words[0]))
    stage.contained.update(run.prs)
    return stage.tell(inputs.NothingToTest(run.id))


def _refuse(stage: Stage, words: list[str]) -> Told:
    """The provider refuses a build: `refuse r1 other too many branches`, `refuse r1 workflows 2`.

    `workflows` is refused for one pull request: the one named, else the first the run tests.
    """
    run = stage.run(number_of(words[0]))
    code, *rest = words[1:]
    pr = None
    if code == inputs.BuildRefusal.WORKFLOWS:
        pr = int(rest.pop(0)) if rest and rest[0].isdigit() else run.entries[0].pr
    return stage.tell(
        inputs.TestBranchRefused(run.id, pr, inputs.BuildRefusal(code), " ".join(rest))
    )


def _build(stage: Stage, words: list[str]) -> Told:
    """`build r2`; `build r2 otherwise`: the provider merges in another way than before."""
    return stage.build(_run_of(stage, words), otherwise="otherwise" in words)


def _delay(stage: Stage, words: list[str]) -> Told:
    """The provider's limits put off a build: `delay r1 10`, in minutes."""
    run = stage.run(number_of(words[0]))
    until = stage.now + timedelta(minutes=int(words[1]))
    return stage.tell(inputs.TestBranchDelayed(run.id, until, "no slot is left"))


def _require(stage: Stage, words: list[str]) -> Told:
    """`require unit lint@9`, `require nothing`, `require none-explicitly`, `require unreadable`."""
    if words == ["unreadable"]:
        return stage.tell(inputs.RequiredChanged(RequiredSet(), "403"))
    if words == ["nothing"]:
        return stage.tell(inputs.RequiredChanged(RequiredSet()))
    names = tuple(
        RequiredName(name, pin or None)
        for name, _, pin in (word.partition("@") for word in words)
        if name != "none-explicitly"
    )
    source = RequiredSource.MERGE_INSTANCE
    return stage.tell(inputs.RequiredChanged(RequiredSet(names, source)))


def _repository(stage: Stage, words: list[str]) -> Told:
    hold = [HoldReason(word) for word in words if word in set(HoldReason)]
    return stage.tell(
        inputs.RepositoryChanged(
            available="available" in words,
            hold=hold[0] if hold else None,
            sends_results=stage.queue.sends_results,
        )
    )


def _revive(stage: Stage, words: list[str]) -> Told:
    """A report changes under its old id: `revive r1 unit=running`."""
    run = stage.run(number_of(words[0]))
    name, _, value = words[1].partition("=")
    checks = tuple(
        replace(check, outcome=CheckOutcome(value)) if check.name == name else check
        for check in run.checks
    )
    return stage.tell(inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True))


def _again(stage: Stage, words: list[str]) -> Told:
    """Newest reports of a run once more."""
    run = stage.run(number_of(words[0]))
    return stage.tell(
        inputs.ChecksReported(run.id, run.sha or Sha(""), run.checks, run.checks_complete)
    )


def _run_of(stage: Stage, words: list[str]) -> str:
    return stage.run_id(number_of(words[0]))


def _lost(stage: Stage, words: list[str]) -> Told:
    return stage.tell(inputs.TestBranchLost(_run_of(stage, words), "mallory"))


def _advance(stage: Stage, words: list[str]) -> Told:
    """`advance refused r2`."""
    return stage.tell(inputs.AdvanceRefused(_run_of(stage, words[1:]), "no such update"))


def _rerun(stage: Stage, words: list[str]) -> Told:
    """`rerun refused r2`."""
    return stage.tell(inputs.RerunRefused(_run_of(stage, words[1:])))


def _workflows(stage: Stage, words: list[str]) -> Told:
    """Workflow files changed; `workflows lint=merge_group`: where checks run instead."""
    never = values_of(words) if words else None
    return stage.tell(inputs.WorkflowsChanged(never))


def _ran(stage: Stage, words: list[str]) -> Told:
    """These checks ran on something that landed: `ran unit lint`."""
    history = CheckHistory(dict.fromkeys(words, stage.now))
    stage.queue = replace(stage.queue, check_history=history)
    return Told((), None)


VERBS: Mapping[str, Verb] = {
    "build": _build,
    "land": lambda stage, words: stage.land(_run_of(stage, words)),
    "pass": _pass,
    "fail": _fail,
    "report": _report,
    "again": _again,
    "revive": _revive,
    "evidence": _evidence,
    "revoke": _revoke,
    "doom": _doom,
    "rerun": _rerun,
    "conflict": _conflict,
    "delay": _delay,
    "refuse": _refuse,
    "contained": _contained,
    "lose": _lost,
    "foreign": _foreign,
    "rewrite": _rewrite,
    "set-back": _set_back,
    "push-after": _push_after,
    "seen-early": _seen_early,
    "seen": _seen,
    "gone": _gone,
    "mismatch": _mismatch,
    "stop": _stop,
    "advance": _advance,
    "require": _require,
    "workflows": _workflows,
    "ran": _ran,
    "rules": lambda stage, _: stage.tell(inputs.RulesChanged()),
    "repository": _repository,
}
"""Every verb that reports something."""
