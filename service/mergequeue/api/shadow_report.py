"""Handler of the endpoint about a queue in shadow."""

from service.http.callers import Call
from service.http.models.common import Named
from service.http.route import Route, read
from service.mergequeue.api import pull_requests
from service.mergequeue.api.models.answers import shadow_report as answers
from service.mergequeue.operations import shadow_report
from service.mergequeue.operations.shadow_report import Spread


class GetShadowReport(Named):
    """`/getShadowReport`."""


@read(
    "getShadowReport",
    GetShadowReport,
    answers.ShadowReportShown,
    "queue_not_found",
)
async def get(call: Call, request: GetShadowReport) -> answers.ShadowReportShown:
    """Return what a queue in shadow decided, beside what others did."""
    queue = await pull_requests.queue_of(call, request)
    report = await shadow_report.load_report(call.runtime, queue)
    rows = [
        answers.ComparedShown.of(
            row, failed_checks=[*row.failed_checks], failed_tests=[*row.failed_tests]
        )
        for row in report.rows
    ]
    return answers.ShadowReportShown.of(
        report,
        to_verdict=_shown(report.to_verdict),
        to_merge=_shown(report.to_merge),
        saved_p50_seconds=report.saved_p50_s,
        pull_requests=rows,
    )


def _shown(spread: Spread | None) -> answers.SpreadShown | None:
    if spread is None:
        return None
    return answers.SpreadShown(p50_seconds=spread.p50_s, p95_seconds=spread.p95_s)


SHADOW_REPORT_ROUTES: tuple[Route, ...] = (get,)
