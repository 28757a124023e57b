"""Handler of the endpoint about the checks of a target branch."""

from service.http.callers import Call
from service.http.models.common import Named
from service.http.route import Route, read
from service.mergequeue.api import pull_requests
from service.mergequeue.api.models.answers import target_health as answers
from service.mergequeue.breaks.search import Break, StoredBreak
from service.mergequeue.operations import target_health
from service.mergequeue.wording import breaks as wording


class GetTargetHealth(Named):
    """`/getTargetHealth`."""


@read(
    "getTargetHealth",
    GetTargetHealth,
    answers.TargetHealthShown,
    "queue_not_found",
)
async def get(call: Call, request: GetTargetHealth) -> answers.TargetHealthShown:
    """Return which watched checks are red on the target branch, and who broke them."""
    queue = await pull_requests.queue_of(call, request)
    health = await target_health.load_health(call.runtime, queue)
    return answers.TargetHealthShown(
        watched=list(health.watched),
        verified_commit=None if health.verified is None else health.verified.sha,
        verified_at=None if health.verified is None else health.verified.at,
        breaks=[_shown(each) for each in health.breaks],
    )


def _shown(each: StoredBreak) -> answers.TargetBreakShown:
    one = each.value
    culprit, before = one.culprit_commit, one.commit_before
    return answers.TargetBreakShown(
        id=one.id,
        check=one.check.name,
        report_url=one.url,
        opened_at=each.opened_at,
        ended_at=each.ended_at,
        end=one.stopped,
        situation=wording.situation(one),
        red_commit=one.commits[one.last].sha,
        culprit_commit=None if culprit is None else culprit.sha,
        culprit_pr_number=None if culprit is None else culprit.pr,
        previous_commit=None if before is None else before.sha,
        red_runs=[probe.sha for probe in one.red_runs if probe.sha],
        green_runs=[probe.sha for probe in one.green_runs if probe.sha],
        suspects=_suspects(one),
        revert_pr_number=None if one.revert is None else one.revert.number,
        runs=len(one.probes),
    )


def _suspects(one: Break) -> list[answers.SuspectShown]:
    commits = (one.commits[place] for place in one.suspects)
    return [answers.SuspectShown(commit=each.sha, pr_number=each.pr) for each in commits]


TARGET_HEALTH_ROUTES: tuple[Route, ...] = (get,)
