"""Answer an upload: its failures, which of them are quarantined, and the exit code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from service.accounts import page_addresses
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.detector import history
from service.testhealth.operations import checks, records
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.operations.upload_values import (
    AnsweredFailure,
    UploadAnswer,
    Verdict,
)
from service.testhealth.reports import failures, identity
from service.testhealth.reports.results import CaseResult, Counts, FileStatus, Outcome, ReportFile
from service.testhealth.settings import TestSettings
from service.testhealth.store import listings, quarantine
from service.testhealth.store import states as test_states
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.cases import ASKED_AT_ONCE, TEXT_MAX
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.states import StateChange
from service.testhealth.store.uploads import StoredFile, Upload
from service.vocabulary import Health, Override

FAILURES_MAX = 1000
"""Failures in one answer."""


Failing = tuple[str, int | None, CaseResult]
"""The id of a test that failed in an upload, its number, None if it is new, and its result."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The failures of an upload: the first `FAILURES_MAX`, their number, and the quarantined.

    The unquarantined come first. `quarantined` has numbers of tests, of all failures.
    """

    shown: tuple[AnsweredFailure, ...]
    failed: int
    quarantined: frozenset[int]


def answer_of(upload: Upload, said: Answered, counts: Counts, html_url: str | None) -> UploadAnswer:
    """Return the answer to an upload whose tests are judged; `html_url` None: a dry run."""
    quarantined = len(said.quarantined)
    is_whole = all(each.status is FileStatus.ACCEPTED for each in upload.files)
    return UploadAnswer(
        upload_id=None if html_url is None else upload.id,
        duplicate=False,
        dry_run=html_url is None,
        trusted=upload.is_eligible,
        counts=counts,
        files=upload.files,
        failures=said.shown,
        failures_truncated=said.failed > len(said.shown),
        quarantined_failures=quarantined,
        unquarantined_failures=said.failed - quarantined,
        verdict=verdict_of(
            quarantined,
            said.failed - quarantined,
            upload.command_exit_code,
            is_whole=is_whole,
        ),
        warnings=upload.warnings,
        html_url=html_url,
        runner_ends=upload.runner_ends,
    )


def verdict_of(
    quarantined: int,
    unquarantined: int,
    command_exit_code: int,
    *,
    is_whole: bool,
    not_excused: Sequence[str] = (),
) -> Verdict:
    """Return what the test command should return; `is_whole`: every file was accepted.

    `not_excused`: why quarantined failures are not excused, empty: they are.
    """
    if unquarantined or (quarantined and not_excused):
        code = command_exit_code or 1
    elif quarantined and is_whole:
        code = 0
    else:
        code = command_exit_code
    failed = quarantined + unquarantined
    said = f"{failed:,} {'failure' if failed == 1 else 'failures'}" if failed else "No failures"
    if quarantined and unquarantined:
        said += f", {quarantined:,} quarantined, {unquarantined:,} not"
    elif quarantined:
        said += ", quarantined" if failed == 1 else ", all quarantined"
    elif failed:
        said += ", not quarantined" if failed == 1 else ", none quarantined"
    if quarantined and not_excused:
        said += f", but not excused: {'; '.join(not_excused)}"
    elif not is_whole:
        said += "; not every file could be read whole"
    return Verdict(code, code == 0, f"{said}: exit code {code}.")


def stored_files(files: Iterable[ReportFile]) -> tuple[StoredFile, ...]:
    """Return how each file was read, as it is stored."""
    return tuple(
        StoredFile(
            name=each.name,
            format=each.format,
            status=each.status,
            tests=len(each.cases),
            error=each.fault.message if each.fault else None,
            line=each.fault.line if each.fault else None,
            column=each.fault.column if each.fault else None,
            sha256=each.sha256,
        )
        for each in files
    )


def answered(
    session: Tx,
    context: RepositoryContext,
    failing: Sequence[Failing],
    variant: str,
    started_at: datetime | None,
) -> Answered:
    """Return the failures, the unquarantined first, else in their order.

    Those of a queue's test run are quarantined as they were when it began, `started_at`. Other
    columns are read only of the failures that are shown: an upload may have 100,000.
    """
    if started_at is not None:
        context = replace(
            context, now=started_at, settings=_switched_at(session, context, started_at)
        )
    nos = [no for _, no, _ in failing if no is not None]
    listed = _listed(session, context, _marked(session, context, nos), started_at)
    quarantined = frozenset(
        no for no, case in listed.items() if records.setting_of(context, case) is not None
    )
    shown = sorted(failing, key=lambda each: each[1] in quarantined)[:FAILURES_MAX]
    others = [no for _, no, _ in shown if no is not None and no not in listed]
    listed |= _listed(session, context, others, started_at)
    answered_failures = tuple(_failure(context, each, listed, variant) for each in shown)
    return Answered(answered_failures, len(failing), quarantined)


def _marked(session: Tx, context: RepositoryContext, nos: Sequence[int]) -> list[int]:
    """Return those of the tests that may be quarantined."""
    if not context.settings.quarantine_enabled:
        return []
    here = context.repository.id
    parts = (nos[start : start + ASKED_AT_ONCE] for start in range(0, len(nos), ASKED_AT_ONCE))
    return [no for some in parts for no in listings.marked(session, here, some)]


def _listed(
    session: Tx, context: RepositoryContext, nos: Sequence[int], at: datetime | None = None
) -> dict[int, ListedCase]:
    """Return the tests by number; `at`: as they were known to be then."""
    listed: dict[int, ListedCase] = {}
    for start in range(0, len(nos), ASKED_AT_ONCE):
        some = nos[start : start + ASKED_AT_ONCE]
        cases = listings.listed_cases(session, context.repository.id, some)
        listed |= {case.no: case for case in cases}
    return listed if at is None else _as_of(session, context, listed, at)


def _switched_at(session: Tx, context: RepositoryContext, at: datetime) -> TestSettings:
    """Return the settings, with switches off that were switched on since."""
    since, now = quarantine.since_of(session, context.repository.id), context.settings
    return replace(
        now,
        quarantine_enabled=now.quarantine_enabled and _was_on(since.quarantine_since, at),
        auto_quarantine_enabled=now.auto_quarantine_enabled and _was_on(since.auto_since, at),
    )


def _was_on(since: datetime | None, at: datetime) -> bool:
    return since is None or since <= at


def _as_of(
    session: Tx, context: RepositoryContext, listed: Mapping[int, ListedCase], at: datetime
) -> dict[int, ListedCase]:
    """Return the tests as they were known to be at an instant, whatever became known since."""
    here = context.repository.id
    written = test_states.histories_of(session, here, listed)
    overrides = quarantine.override_histories(session, here, listed)
    then: dict[int, ListedCase] = {}
    for no, case in listed.items():
        said = [each for each in overrides.get(no, ()) if each.at <= at]
        last = said[-1] if said else None
        then[no] = case._replace(
            status=status_at(written.get(no, ()), at),
            override=Override.UNSPECIFIED if last is None else last.override,
            override_reason="" if last is None else last.reason,
            expires_at=None if last is None else last.expires_at,
        )
    return then


def status_at(written: Sequence[StateChange], at: datetime) -> Health:
    """Return the health of a test as it was known at an instant, by its history."""
    entries = [each.change for each in written if each.written_at <= at]
    standing = history.effective(entries)
    return standing[-1].value if standing else Health.HEALTHY


def _failure(
    context: RepositoryContext, failing: Failing, listed: Mapping[int, ListedCase], variant: str
) -> AnsweredFailure:
    test_id, no, reported = failing
    case = None if no is None else listed.get(no)
    checked = None if case is None else checks.checked(context, case)
    return AnsweredFailure(
        test_id=test_id if case is None else case.id,
        name=reported.name[:TEXT_MAX],
        parent=reported.parent[:TEXT_MAX],
        classname=reported.classname[:TEXT_MAX],
        file=reported.file[:TEXT_MAX],
        variant=identity.variant_of(reported, variant)[:TEXT_MAX],
        status=Health.HEALTHY if case is None else case.status,
        quarantined=checked is not None and checked.quarantined,
        quarantine_reason=None if checked is None else checked.reason,
        summary=_summary(reported),
    )


def _summary(result: CaseResult) -> str:
    failed = [each for each in result.attempts if each.outcome is Outcome.FAILED]
    return failures.summary_of(failures.headline_of(failed[-1])) if failed else ""


def answer_again(
    session: Tx,
    runtime: Runtime,
    context: RepositoryContext,
    upload: Upload,
    attempts: Sequence[StoredAttempt],
) -> UploadAnswer:
    """Return the answer to an earlier upload."""
    address = page_addresses.upload(runtime.options, context.repository.ref, upload.id)
    failing = _failures_of(session, context, attempts)
    return answer_of(upload, failing, Counts(**upload.counts), address)


def _failures_of(
    session: Tx, context: RepositoryContext, attempts: Sequence[StoredAttempt]
) -> Answered:
    """Return the failures of an earlier upload, quarantined as they were then."""
    last = {each.no: each for each in attempts if each.outcome is not Outcome.SKIPPED}
    failed = {no: each for no, each in last.items() if each.outcome is Outcome.FAILED}
    listed = _listed(session, context, sorted(failed))
    answered_failures = [
        AnsweredFailure(
            test_id=case.id,
            name=case.name,
            parent=case.parent,
            classname=case.classname,
            file=case.file,
            variant=case.variant,
            status=case.status,
            quarantined=failed[no].is_quarantined,
            quarantine_reason=checks.checked(context, case).reason
            if failed[no].is_quarantined
            else None,
            summary=failures.summary_of(failed[no].headline or ""),
        )
        for no, case in listed.items()
    ]
    ordered = sorted(answered_failures, key=lambda each: (each.quarantined, each.test_id))
    quarantined = frozenset(no for no in listed if failed[no].is_quarantined)
    return Answered(tuple(ordered[:FAILURES_MAX]), len(answered_failures), quarantined)
