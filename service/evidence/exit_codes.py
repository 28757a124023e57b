"""Which exit codes of a job's commands mean that tests failed and nothing else did.

Learned from the job's own runs (docs/design/evidence.md 5), or named by a setting.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from service import globs
from service.evidence import expected_tests
from service.evidence.expected_tests import Lookup
from service.evidence.store import base_uploads
from service.testhealth.detector.completeness import GENERAL_CODE, SIGNALS_FROM, ExitCodes
from service.testhealth.reports.jobs import PLATFORM
from service.testhealth.settings import FAILURE_WORD
from service.testhealth.store import quarantine
from service.testhealth.store.uploads import Upload


@dataclass(frozen=True, slots=True)
class _Ended:
    """One command that ended: what it was, on which code, how, and how many tests failed."""

    key: str
    code_id: str
    exit_code: int
    failures: int


def codes_of(lookup: Lookup, job: str, but: Set[int]) -> ExitCodes:
    """Return the exit codes of a job that mean failed tests; `but`: pull requests that teach none.

    A command has shown a code if it ended with it where tests failed, and with 0 on the same code
    where none did: so nothing but these tests can have failed. One end with the code and without
    a failed test takes that back. The code 1 is never learned.
    """
    named = quarantine.settings_of(lookup.session, lookup.id).test_failure_exit_codes
    words = {word for pattern, word in map(_parsed, named) if _is_called(job, pattern)}
    uploads = base_uploads.with_exit_code(lookup.session, lookup.id, job, lookup.before)
    taught = [each for each in uploads if but.isdisjoint(each.prs)]
    return ExitCodes(
        named=frozenset(int(word) for word in words if word != FAILURE_WORD),
        names_failure=FAILURE_WORD in words,
        learned=frozenset(_learned(_commands(lookup, taught))),
    )


def _parsed(item: str) -> tuple[str, str]:
    pattern, _, word = item.rpartition("=")
    return pattern, word


def _is_called(job: str, pattern: str) -> bool:
    """Whether a pattern fits a job key, with or without its platform and its workflow."""
    plain = job.partition(PLATFORM)[0]
    return any(globs.matches(pattern, name) for name in (job, plain, plain.rpartition(" / ")[2]))


def _commands(lookup: Lookup, uploads: Iterable[Upload]) -> list[_Ended]:
    """Return each command once, of whose uploads all are whole and sent by the job itself."""
    by_command: defaultdict[str, list[Upload]] = defaultdict(list)
    for each in uploads:
        by_command[each.account.session or each.id].append(each)
    return [
        _Ended(
            sent[0].account.command_key,
            sent[0].code_id,
            sent[0].account.exit_code or 0,
            sum(each.failures for each in sent),
        )
        for sent in by_command.values()
        if expected_tests.is_whole(sent)
        and all(expected_tests.is_from_its_sender(lookup, each) for each in sent)
    ]


def _learned(ended: Sequence[_Ended]) -> Iterable[tuple[str, int]]:
    """Return the codes that each command has shown to mean failed tests."""
    passed = {(each.key, each.code_id) for each in ended if not each.exit_code | each.failures}
    contradicted = {(each.key, each.exit_code) for each in ended if not each.failures}
    for each in ended:
        code = (each.key, each.exit_code)
        is_distinct = GENERAL_CODE < each.exit_code < SIGNALS_FROM
        if is_distinct and (each.key, each.code_id) in passed and code not in contradicted:
            yield code
