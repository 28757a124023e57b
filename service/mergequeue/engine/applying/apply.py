"""One input into the draft: the table of what each of them changes. Plans nothing."""

from collections.abc import Callable
from typing import Never, cast

from service.mergequeue.engine import inputs
from service.mergequeue.engine.applying import builds, commands, reports, settings
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.planning import landing, landing_stops
from service.mergequeue.engine.state import target
from service.mergequeue.engine.state.draft import Draft

Applier = Callable[[Draft, Never], Refused | None]


def _nothing(_draft: Draft, _one: Input) -> None:
    """Change nothing: planning looks at the clock, which has run since a rerun was requested."""


APPLIERS: dict[type[Input], Applier] = {
    inputs.Submit: commands.submit,
    inputs.Cancel: commands.cancel,
    inputs.Restart: commands.restart,
    inputs.SetImpactedTargets: commands.set_impacted_targets,
    inputs.Configure: settings.configure,
    inputs.SetState: commands.set_state,
    inputs.PlaceHold: commands.place_hold,
    inputs.ReleaseHold: commands.release_hold,
    inputs.Delete: commands.delete,
    inputs.FactsChanged: reports.facts_changed,
    inputs.LandedWorkJudged: reports.landed_work_judged,
    inputs.PullRequestGone: reports.pull_request_gone,
    inputs.TestBranchBuilt: builds.built,
    inputs.NothingToTest: builds.nothing_to_test,
    inputs.TestBranchConflicted: builds.conflicted,
    inputs.TestBranchRefused: builds.refused,
    inputs.TestBranchDelayed: builds.delayed,
    inputs.TestBranchLost: builds.lost,
    inputs.ChecksReported: reports.checks_reported,
    inputs.RerunStarted: _nothing,
    inputs.RerunRefused: reports.rerun_refused,
    inputs.EvidenceReported: reports.evidence_reported,
    inputs.PassRevoked: reports.pass_revoked,
    inputs.FailureForeseen: reports.failure_foreseen,
    inputs.RequiredChanged: reports.required_changed,
    inputs.RulesChanged: reports.rules_changed,
    inputs.WorkflowsChanged: reports.workflows_changed,
    inputs.TargetMoved: target.moved,
    inputs.TargetGone: target.gone,
    inputs.Landed: landing.landed,
    inputs.LandingStopped: landing_stops.stopped,
    inputs.AdvanceRefused: landing.advance_refused,
    inputs.LandingMismatch: target.mismatched,
    inputs.EstimateChanged: reports.estimate_changed,
    inputs.RatesMeasured: reports.rates_measured,
    inputs.RepositoryChanged: reports.repository_changed,
    inputs.RepositoryFileRead: settings.repository_file_read,
    inputs.TimePassed: _nothing,
}
"""Input → the function that changes what it names; a command may refuse instead."""


def apply(draft: Draft, one: Input) -> Refused | None:
    """Change what the input names. A refusal means that nothing changed."""
    return APPLIERS[type(one)](draft, cast(Never, one))
