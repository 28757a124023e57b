"""CTRF JSON, the Common Test Report Format, to cases."""

import orjson

from service.testhealth.reports import capture
from service.testhealth.reports.durations import bounded
from service.testhealth.reports.formats import shapes
from service.testhealth.reports.reading import Reading, ReadOptions, refused
from service.testhealth.reports.results import (
    Attempt,
    CaseResult,
    Fault,
    Format,
    Outcome,
    ReportFile,
)
from service.testhealth.reports.text import Text, allowed, without_escapes
from service.testhealth.reports.xml import NO_FORMAT, Stopped

# The document is read at once, and its values take many times its size: so much keeps them
# within the 256 MiB of docs/design/limits.md 5. A test of a real report has about ten values.
BYTES_MAX = 22 * 1024 * 1024
VALUES_MAX = 3_000_000
# A report that claims more retries than any runner makes is bounded.
RETRIES_MAX = 100
DECLARED_MAX = 999_999_999
OUTCOMES = {
    "passed": Outcome.PASSED,
    "failed": Outcome.FAILED,
    "skipped": Outcome.SKIPPED,
    "pending": Outcome.SKIPPED,
}

Fields = dict[str, object]


def read(text: Text, read_options: ReadOptions) -> ReportFile:
    """Return the report. Raises Stopped for JSON that is not whole: no case of it is sure."""
    if len(text.content) > BYTES_MAX or sum(map(text.content.count, b",[{")) > VALUES_MAX:
        raise Stopped("A CTRF file may have 22 MiB and 3,000,000 values; send several.")
    whole = text.whole()
    try:
        document: object = orjson.loads(whole)
    except orjson.JSONDecodeError as error:
        message = f"The JSON is not valid: {error.msg}."
        raise Stopped(message, error.lineno, error.colno) from None
    results = shapes.record(shapes.record(document).get("results"))
    if not isinstance(results.get("tests"), list):
        return refused(Fault(NO_FORMAT))
    reading = Reading(Format.CTRF, read_options)
    for test in shapes.records(results["tests"]):
        reading.add(_case_of(reading, test))
    failed = shapes.number(shapes.record(results.get("summary")), "failed") or 0
    read_failures = sum(
        attempt.outcome is Outcome.FAILED
        for case in reading.cases
        for attempt in case.explicit_attempts
    )
    reading.unread_failures = max(0, int(min(failed, DECLARED_MAX)) - read_failures)
    return reading.report(None)


def _case_of(reading: Reading, test: Fields) -> CaseResult:
    """One element of `tests`; nearly all passed at once and are said in short."""
    suite = test.get("suite")
    names = suite if isinstance(suite, list) else [suite]
    path = [allowed(name) for name in names if isinstance(name, str) and name]
    has_passed = test.get("status") == "passed"
    retries = _retries_of(reading, test) if "retries" in test or "retryAttempts" in test else ()
    return CaseResult(
        reading.name(shapes.text(test, "name")),
        "",
        "/".join(path),
        reading.file(shapes.text(test, "filePath")),
        seconds_of(test) if has_passed and not retries else None,
        () if has_passed and not retries else (*retries, _attempt_of(reading, test)),
        shapes.line(test, "line"),
        reading.claim(shapes.text(test, "id")),
        path[0] if len(path) > 1 else "",
    )


def _retries_of(reading: Reading, test: Fields) -> tuple[Attempt, ...]:
    """The attempts before the last: as listed, else as many failed ones as `retries` says."""
    listed = shapes.records(test.get("retryAttempts"))[:RETRIES_MAX]
    if listed:
        return tuple(_attempt_of(reading, each) for each in listed)
    retries = shapes.number(test, "retries")
    if test.get("flaky") is not True or not retries or retries < 1:
        return ()
    return (Attempt(Outcome.FAILED),) * int(min(retries, RETRIES_MAX))


def _attempt_of(reading: Reading, fields: Fields) -> Attempt:
    """The attempt that a test or one of its retries describes."""
    word = shapes.text(fields, "status")
    if word not in OUTCOMES:
        reading.note_word(word or "no status")
    outcome = OUTCOMES.get(word, Outcome.SKIPPED)
    stack = capture.shortened_stack(without_escapes(shapes.text(fields, "trace")))
    message = shapes.text(fields, "message")
    return reading.finished(Attempt(outcome, seconds_of(fields), message, stack))


def seconds_of(fields: Fields) -> float | None:
    """The duration, which is in milliseconds."""
    milliseconds = shapes.number(fields, "duration")
    return None if milliseconds is None else bounded(milliseconds / 1000)
