"""Cases of one upload to results, one a test: what the same identity several times means.

docs/design/reports.md 5. A runner that retries, a suite that repeats on purpose, and two tests
under one name look alike in a report; only the first two say something about nondeterminism.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from service.testhealth.reports import results
from service.testhealth.reports.results import (
    CaseKind,
    CaseResult,
    Outcome,
    Warned,
    WarningCode,
)

# However tests are told apart: by id, or by its text.
K = TypeVar("K")

SEVERAL_TESTS = (
    "Names that stand for several tests: {n:,}, as {name!r}. Give each its own, or merge its"
    " retries (Gradle: `mergeReruns = true`)."
)

# What no runner repeats as often and a hostile file does: each attempt is stored.
ATTEMPTS_MAX = 100

# Of several tests under one name the worst speaks for all.
DECISIVE = (Outcome.FAILED, Outcome.PASSED, Outcome.SKIPPED)


class ResultsByTest(NamedTuple, Generic[K]):
    """The tests of an upload: those of which one case says that they passed at once, and others.

    Each in order of first sight. Nearly all are of the first kind.
    """

    passed: Mapping[K, CaseResult]
    others: Mapping[K, CaseResult]

    @property
    def size(self) -> int:
        """Return how many tests there are."""
        return len(self.passed) + len(self.others)

    @property
    def ran(self) -> int:
        """Return how many were not skipped."""
        others = self.others.values()
        return self.size - sum(1 for each in others if each.final_outcome is Outcome.SKIPPED)


def sorted_by_test(tests: Sequence[K], cases: Sequence[CaseResult]) -> ResultsByTest[K]:
    """The results of an upload's cases, given in document order with the test of each."""
    passed = dict(zip(tests, cases, strict=True))
    several = _several(tests, cases) if len(passed) < len(tests) else {}
    plain = CaseKind.TEST
    others = {
        test: several.get(test) or _bounded(case)
        for test, case in zip(tests, cases, strict=True)
        if case.explicit_attempts or case.kind is not plain or test in several
    }
    for test in others:
        del passed[test]
    return ResultsByTest(passed, others)


def _several(tests: Sequence[K], cases: Sequence[CaseResult]) -> dict[K, CaseResult]:
    """The results of tests with more than one case."""
    counted = Counter(tests)
    groups: dict[K, list[CaseResult]] = {}
    places: dict[K, list[int]] = {}
    for at, (test, case) in enumerate(zip(tests, cases, strict=True)):
        if counted[test] > 1:
            groups.setdefault(test, []).append(case)
            places.setdefault(test, []).append(at)
    return {
        test: result_of(group, are_adjacent=_are_adjacent(places[test], group))
        for test, group in groups.items()
    }


def _are_adjacent(places: Sequence[int], cases: Sequence[CaseResult]) -> bool:
    """Return whether nothing stands between them, in one element of a suite."""
    return places[-1] - places[0] == len(places) - 1 and not any(
        case.is_first for case in cases[1:]
    )


def result_of(cases: Sequence[CaseResult], *, are_adjacent: bool = True) -> CaseResult:
    """The result of all cases of one identity, at least one: the first case with the attempts.

    It is of the kind `several` if the cases may be different tests; its only attempt is then that
    of the worst case. `are_adjacent`: nothing stands between them in one element of a suite, as
    between attempts.
    """
    first = cases[0]
    if len(cases) == 1:
        return _bounded(first)
    is_retry = are_adjacent and _is_retried(cases)
    if _is_one_test(cases) and (is_retry or _is_repeated(cases)):
        attempts = tuple(attempt for case in cases for attempt in case.attempts)
        return _bounded(first._replace(explicit_attempts=attempts))
    lasts = [case.attempts[-1] for case in cases]
    decisive = min(lasts, key=lambda attempt: DECISIVE.index(attempt.outcome))
    kind = CaseKind.SEVERAL if first.kind is CaseKind.TEST else first.kind
    return first._replace(explicit_attempts=(decisive,), kind=kind)


def _bounded(case: CaseResult) -> CaseResult:
    """The case; of more than 100 attempts, without skipped ones, the first and the last 50.

    The last that was not skipped stays, since it decides.
    """
    attempts = case.explicit_attempts
    if len(attempts) <= ATTEMPTS_MAX:
        return case
    half = ATTEMPTS_MAX // 2
    ran = tuple(each for each in attempts if each.outcome is not Outcome.SKIPPED) or attempts[:1]
    kept = ran if len(ran) <= ATTEMPTS_MAX else ran[:half] + ran[-half:]
    return case._replace(explicit_attempts=kept)


def _is_one_test(cases: Sequence[CaseResult]) -> bool:
    """Return whether they are called the same; else only the `#` in their names made them one."""
    return len({results.fields_of(case) for case in cases}) == 1


def _is_retried(cases: Sequence[CaseResult]) -> bool:
    """All but the last failed, or all: what a runner writes that tries again until it passes."""
    return all(case.outcome is Outcome.FAILED for case in cases[:-1])


def _is_repeated(cases: Sequence[CaseResult]) -> bool:
    """One line of one file, and one suite: the same test on purpose.

    A file without a line is no place: two tests of one name can stand in it.
    """
    has_place = bool(cases[0].file) and cases[0].line is not None
    return has_place and len({(case.file, case.line, case.parent) for case in cases}) == 1


def duplicates_warned(results: Iterable[CaseResult]) -> Warned | None:
    """The warning for names that stand for different tests, None if there are none."""
    names = [result.name for result in results if result.kind is CaseKind.SEVERAL]
    if not names:
        return None
    text = SEVERAL_TESTS.format(n=len(names), name=names[0])
    return Warned(WarningCode.DUPLICATE_IDENTITY, text)
