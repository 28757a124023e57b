"""The required checks of a run in words: one line for each, one sentence for all, and warnings.

Every text about a run that passed uses these, so that none says more than was reported.

See docs/design/comments.md 10.
"""

import difflib
from collections.abc import Mapping, Sequence
from datetime import datetime

from service.mergequeue.engine.checked import CheckedName, Ended, Place
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.wording import foreseen, reporters
from service.mergequeue.wording.names import TEST_BRANCHES
from service.provenance import Proof
from service.text import markdown, phrases, times
from service.text.markdown import Links
from service.text.phrases import Code, Page, Phrase, phrase
from service.vocabulary import CheckKind, CheckOutcome, RequiredName

Table = Sequence[CheckedName]

GLYPHS: Mapping[Ended, str] = {
    Ended.PASSED: "✓",
    Ended.REUSED: "✓",
    Ended.EXCUSED: "🟦",
    Ended.OPTIONAL: "⊘",
    Ended.SKIPPED: "⊘",
    Ended.FAILED: "✗",
    Ended.OPEN: "○",
}

ENDINGS: Mapping[Ended, str] = {
    Ended.PASSED: "passed",
    Ended.REUSED: "passed in an earlier run of the same tree",
    Ended.EXCUSED: "failed, excused",
    Ended.OPTIONAL: "did not run, which a setting allows",
    Ended.SKIPPED: "was skipped",
    Ended.FAILED: "failed",
    Ended.OPEN: "has no result",
}
"""The words for how a required check ended, after its name; the order is that of sentences."""

OUTCOMES: Mapping[CheckOutcome | None, str] = {
    None: "not reported yet",
    CheckOutcome.RUNNING: "running",
    CheckOutcome.PASSED: "passed",
    CheckOutcome.SKIPPED: "skipped",
    CheckOutcome.FAILED: "failed",
    CheckOutcome.INTERRUPTED: "stopped without a result",
    CheckOutcome.BLOCKED: "waiting for approval",
    CheckOutcome.UNKNOWN: "reported an unknown result",
}
"""The text of each check outcome while a run is under way, None for no report."""

_PROGRESS: Mapping[CheckOutcome | None, str] = {
    None: "○",
    CheckOutcome.RUNNING: "⏳",
    CheckOutcome.PASSED: "✓",
    CheckOutcome.SKIPPED: "⊘",
    CheckOutcome.FAILED: "✗",
    CheckOutcome.INTERRUPTED: "⚠️",
    CheckOutcome.BLOCKED: "⏸",
    CheckOutcome.UNKNOWN: "⚠️",
}

_OF_MANY = {Ended.SKIPPED: "were skipped", Ended.OPEN: "have no result"}
_NOTHING = Phrase()

_PROOFS: Mapping[Proof, str] = {
    Proof.READ: ", as the provider says",
    Proof.JOB: ", by a report of its own job",
    Proof.RUN: ", by a report of its CI run",
    Proof.TOKEN: ", by a report that was sent with a token",
}
"""The words for what proves the report that excuses a check."""

PLAIN_CLAUSES_MAX = 2
"""More clauses than these, which may have commas of their own, are parted by semicolons."""

_ONLY_QUARANTINED = "only quarantined tests failed"

_SIMILAR_SHOWN_MAX = 3
_SIMILARITY = 0.6


def summary(table: Table) -> Phrase:
    """Return how the required checks ended, in one clause; empty for an empty table.

    It says that all passed only if each did, by a report of its own.
    """
    if not table:
        return Phrase()
    if all(one.ended is Ended.PASSED for one in table):
        return phrase("all required checks passed")
    if all(one.ended is Ended.REUSED for one in table):
        return phrase("all required checks passed in an earlier run of the same tree")
    groups: dict[tuple[int, str, str, str], list[CheckedName]] = {}
    for one in table:
        before = "" if one.after is None else repr(one.after.jobs)
        key = (_ORDER.index(one.ended), one.because, one.proof or "", before)
        groups.setdefault(key, []).append(one)
    clauses = [
        phrase(
            "{} {}", phrases.names([one.name for one in some]), _ending(some[0], many=len(some) > 1)
        )
        for _, some in sorted(groups.items())
    ]
    shown = clauses[: phrases.NAMES_SHOWN_MAX] + _more(clauses)
    return phrases.joined(shown, ", " if len(shown) <= PLAIN_CLAUSES_MAX else "; ")


def summary_message(table: Table) -> str:
    """Return the same as a plain sentence."""
    return markdown.plain(phrases.sentence(summary(table)))


def specials(table: Table) -> list[Phrase]:
    """Return one clause for each check that did not simply pass on the commit that was tested."""
    return [line(one) for one in table if one.ended is not Ended.PASSED]


def line(one: CheckedName) -> Phrase:
    """Return one check as a clause: "`e2e` was skipped: its job runs only on `merge_group`"."""
    name = Page(Code(one.name), one.url) if one.url else Code(one.name)
    return phrase("{} {}", Phrase((name,)), result(one))


def special_lines(table: Table, links: Links) -> str:
    """Return the clauses of the special checks as list items; empty if each simply passed."""
    special = [one for one in table if one.ended is not Ended.PASSED]
    shown = special[: phrases.NAMES_SHOWN_MAX]
    lines = [f"- {GLYPHS[one.ended]} {markdown.markdown(line(one), links)}" for one in shown]
    if len(special) > len(shown):
        lines.append(f"- and {len(special) - len(shown)} more")
    return "\n".join(lines)


def whole_table(table: Table, links: Links) -> str:
    """Return the table as Markdown: what each check said, of which commit, and by whom."""
    rows = [
        (
            markdown.page(Code(one.name), one.url, links),
            f"{GLYPHS[one.ended]} {markdown.markdown(result(one), links)}",
            markdown.markdown(ran_on(one), links),
            markdown.markdown(reported_by(one), links),
        )
        for one in table
    ]
    return markdown.table(("Check", "Result", "Ran on", "Reported by"), rows) if rows else ""


def progress_table(run: Run, links: Links) -> str:
    """Return the required checks of a run under way; empty if none is required."""
    rows = []
    for one in verdict.standings_of(run):
        check = markdown.page(Code(one.required.name), one.named.url, links)
        result = f"{_PROGRESS[one.outcome]} {OUTCOMES[one.outcome]}"
        if one.doom is not None:
            result = f"✗ {markdown.markdown(foreseen.clause(one.doom), links)}"
        elif one.outcome is CheckOutcome.FAILED and one.named.because:
            result = f"✗ skipped, because {markdown.code(one.named.because)} failed"
        elif one.after is not None:
            result += f" after {markdown.markdown(foreseen.jobs(one.after), links)} had failed"
        rows.append((check, result))
    return markdown.table(("Check", "Result"), rows) if rows else ""


def message(one: CheckedName) -> str:
    """Return the same as a plain sentence."""
    return markdown.plain(phrases.sentence(line(one)))


def result(one: CheckedName) -> Phrase:
    """Return how a check ended and why, with the tests that were excused."""
    tests = one.tests if one.ended is Ended.EXCUSED else ()
    return _ending(one, phrase(" ({})", phrases.names(tests)) if tests else Phrase())


def details(one: CheckedName) -> Phrase:
    """Return why a check counts although it did not simply pass, and the tests that were excused.

    Empty where its ending says all.
    """
    tests = phrases.names(one.tests) if one.ended is Ended.EXCUSED else Phrase()
    proof = phrase(_PROOFS.get(one.proof or Proof.NONE, "").removeprefix(", "))
    return phrases.joined([_because(one), tests, proof], ", ")


def ran_on(one: CheckedName) -> Phrase:
    """Return the commit that the check is about."""
    where = "head of the PR" if one.place is Place.HEAD else "test branch"
    return phrase(where + " {}", phrases.commit(one.sha)) if one.sha else phrase(where)


def reported_by(one: CheckedName) -> Phrase:
    """Return what reported the check; empty if nothing is known to have."""
    reporter = one.reporter
    if reporter is None:
        return Phrase()
    said = phrase(
        "check run {}" if reporter.kind is CheckKind.SUITE_RUN else "commit status {}",
        Code(reporter.check_id),
    )
    if reporter.app_id is not None:
        said += phrase(" of App {}", Code(reporter.app_id))
    if reporter.attempt is not None:
        said += phrase(", attempt {}", reporter.attempt)
    return said


_ORDER = tuple(ENDINGS)


def _ending(one: CheckedName, tests: Phrase = _NOTHING, *, many: bool = False) -> Phrase:
    proof = _PROOFS.get(one.proof or Proof.NONE, "")
    words = ENDINGS[one.ended]
    words = _OF_MANY.get(one.ended, words) if many else words
    ending = phrases.joined([phrase(words), _because(one)], ": ")
    return ending + tests + phrase(proof)


def _because(one: CheckedName) -> Phrase:
    if one.because:
        return foreseen.said(one.because)
    if one.after is not None:
        return phrase("{} had failed before it began", foreseen.jobs(one.after))
    return phrase(_ONLY_QUARANTINED) if one.ended is Ended.EXCUSED else Phrase()


def _more(clauses: Sequence[Phrase]) -> list[Phrase]:
    more = len(clauses) - phrases.NAMES_SHOWN_MAX
    return [phrase("and {} more", more)] if more > 0 else []


def of_run(run: Run, now: datetime) -> list[Phrase]:
    """Sentences about checks that stay away, before the run is given up for it."""
    if run.checks and not run.checks_complete:
        return [_unread(name) for name in verdict.silent_of(run)[: phrases.NAMES_SHOWN_MAX]]
    named = [one.named for one in verdict.standings_of(run)]
    foreign = reporters.sentences(named)
    if foreign:
        return foreign[: phrases.NAMES_SHOWN_MAX]
    warns_at = verdict.warns_at(run)
    if warns_at is None or now < warns_at:
        return []
    if not run.checks:
        return [_none_started()]
    since = run.start_clock or run.built_at or run.created_at
    silent = times.duration(now - max(since, run.last_report_at or since))
    reported = sorted({check.name for check in run.checks})
    late = verdict.silent_of(run)[: phrases.NAMES_SHOWN_MAX]
    return [_silent(name, silent, reported) for name in late]


def _none_started() -> Phrase:
    return phrase(
        "No check has started on the test branch. Your CI may not run on {}: add that pattern "
        "to the branches your workflows run for.",
        TEST_BRANCHES,
    )


def _unread(name: RequiredName) -> Phrase:
    return phrase(
        "The test branch has more reports than Headgate reads. {} may be among those that it did "
        "not read.",
        name.name,
    )


def _silent(name: RequiredName, length: str, reported: list[str]) -> Phrase:
    what = phrase("{} has not reported for " + length + ".", name.name)
    similar = difflib.get_close_matches(name.name, reported, _SIMILAR_SHOWN_MAX, _SIMILARITY)
    if not similar:
        return what
    return what + phrase(
        " Reported under similar names: {}. If the name changed, update the required checks.",
        phrases.names(similar),
    )
