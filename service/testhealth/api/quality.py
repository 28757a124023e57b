"""Handlers of the endpoints about how well tests are judged."""

from collections.abc import Sequence
from datetime import date

from service.http.callers import Call
from service.http.route import Route, read
from service.testhealth.api.models import quality as models
from service.testhealth.api.models.answers import quality as answers
from service.testhealth.operations import quality, records
from service.testhealth.operations.all_tests import TestAmongOthers
from service.testhealth.operations.quality import JudgedPast
from service.testhealth.operations.records import RepositoryAddresses
from service.vocabulary import Role

ORG = "organization_not_found"
DECIMALS = 3


@read(
    "flaky-tests/get-detection-quality",
    models.GetDetectionQuality,
    answers.DetectionQuality,
    ORG,
    "overloaded",
)
async def get_quality(call: Call, asked: models.GetDetectionQuality) -> answers.DetectionQuality:
    """Say how well past flags hold by all evidence of today."""
    addresses = await _addresses(call, asked)
    found = await quality.of_repository(call.runtime, addresses.repository)
    past, tests = found.now, found.tests
    return answers.DetectionQuality(
        replayed_at=found.at,
        since=past.since if past else None,
        until=past.until if past else None,
        uploads_left_out=found.left_out,
        tests=past.tests if past else 0,
        past=_past(past),
        doubtful_flags=[
            answers.DoubtfulFlag.of(
                tests[no],
                **_more(addresses, tests[no]),
                flagged_at=flag.since,
                cleared_at=flag.until,
                runs_since=flag.runs,
                runs_needed=flag.needed,
            )
            for no, flag in (past.doubtful if past else ())
            if no in tests
        ],
        missed_failures=[
            answers.MissedFailure.of(
                tests[no], **_more(addresses, tests[no]), failed_at=at, flagged_at=flagged_at
            )
            for no, at, flagged_at in (past.missed if past else ())
            if no in tests
        ],
    )


@read(
    "flaky-tests/preview-settings",
    models.PreviewTestSettings,
    answers.SettingsPreviewed,
    ORG,
    "overloaded",
    role=Role.QUEUE,
)
async def preview_settings(
    call: Call, asked: models.PreviewTestSettings
) -> answers.SettingsPreviewed:
    """Say what other settings would have said of the stored past; changes nothing."""
    addresses = await _addresses(call, asked)
    found = await quality.preview(call.runtime, addresses.repository, asked.changes())
    return answers.SettingsPreviewed(
        replayed_at=found.at,
        since=found.now.since if found.now else None,
        until=found.now.until if found.now else None,
        uploads_left_out=found.left_out,
        now=_past(found.now),
        then=_past(found.then),
        newly_flagged=_named(addresses, found.more),
        no_longer_flagged=_named(addresses, found.fewer),
        not_replayed=list(found.not_replayed),
        notes=list(found.notes),
    )


async def _addresses(
    call: Call, asked: models.GetDetectionQuality | models.PreviewTestSettings
) -> RepositoryAddresses:
    ref, slug = asked.repo.ref, asked.org_url_slug
    return await records.find_addresses(call.runtime, call.caller, ref, slug)


def _past(past: JudgedPast | None) -> answers.JudgedPast | None:
    if past is None:
        return None
    counts, precision, recall = past.quality, past.quality.precision, past.quality.recall
    return answers.JudgedPast(
        flags=counts.flags,
        flags_confirmed=counts.confirmed,
        flags_unconfirmed=counts.unconfirmed,
        flags_open=counts.open,
        precision_at_least=_rounded(precision.low),
        flags_missing=precision.missing,
        failures_caught=counts.caught,
        failures_missed=counts.missed,
        failures_unclear=counts.unclear,
        recall_at_least=_rounded(recall.low),
        recall_at_most=_rounded(recall.high),
        failures_missing=recall.missing,
        weeks=[
            answers.WeekOfFlags(first_day=date.fromordinal(day), flags=flags)
            for day, flags in past.by_week
        ],
        flaky_now=len(past.flaky),
        broken_now=len(past.broken),
        times_broken=past.breaks,
        failed_results=past.failures,
        failed_results_excused=past.excused,
        queue_runs_failed_by_flakes=past.innocents,
        queue_runs_explained=past.spared,
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, DECIMALS)


def _named(
    addresses: RepositoryAddresses, cases: Sequence[TestAmongOthers]
) -> list[answers.TestNamed]:
    return [answers.TestNamed.of(case, **_more(addresses, case)) for case in cases]


def _more(addresses: RepositoryAddresses, case: TestAmongOthers) -> dict[str, object]:
    """Return what a record of a test has beside the fields of the case."""
    return {"html_url": addresses.address_of(case.id), "file_path": case.file or None}


QUALITY_ROUTES: tuple[Route, ...] = (get_quality, preview_settings)
"""The endpoints, in the order of the document."""
