"""The tests that failed in a pull request's run, as its comment lists them.

Names of tests, and the addresses that came with their results, are texts of strangers.

See docs/design/comments.md 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.text import markdown, phrases, times, traces
from service.text.markdown import Links
from service.text.phrases import Phrase, phrase

GAPS_MAX = 5
"""Reasons why a report is incomplete that one comment names."""

TRACE_LINES = 12
"""Lines of the trace of a failed test; the page of the test has more."""

OPEN_MAX = 3
"""More lines than this are folded."""


class Standing(StrEnum):
    """The health of a failed test when its run began."""

    NEW = "new"
    SEEN = "seen"
    FLAKY = "flaky"
    BROKEN = "broken"
    EXCUSED = "excused"


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed in a run.

    `is_new_text`: it had failed before, but not in this way. `until`: the end of its
    quarantine, None: none is known. `log` is the page of its CI run, `page` ours of its history;
    empty where there is none. `message` is the first line of what failed. Only pages show `stack`,
    the text below it, and link by `id`. `file` and `line` are those of the test in its report.
    `fails_on` is the target branch if the test failed there too before the run, as far as known.
    """

    name: str
    standing: Standing
    is_new_text: bool = False
    week_rate: float = 0.0
    prs_hit: int = 0
    until: datetime | None = None
    log: str = ""
    page: str = ""
    message: str = ""
    stack: str = ""
    id: str = ""
    file: str = ""
    line: int | None = None
    fails_on: str = ""

    @property
    def trace(self) -> tuple[str, ...]:
        """The first lines of its trace, cleaned, as pages show them."""
        return tuple(line.text for line in traces.lines_of(self.stack, TRACE_LINES))


@dataclass(frozen=True, slots=True)
class KilledRunner:
    """A test runner that began in a job and never said how it ended; the code of its command."""

    runner: str
    job: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class FailedTests:
    """The number of failed and excused tests, and the first few of all.

    `gaps` are required statuses whose reports are not complete, each with what they lack.
    `revoked` are those that passed because failures were excused and count as failed. `killed` are
    test runners of which nobody can say what else would have failed.
    """

    failed: int = 0
    excused: int = 0
    shown: tuple[FailedTest, ...] = ()
    gaps: tuple[tuple[str, tuple[str, ...]], ...] = ()
    revoked: tuple[str, ...] = ()
    killed: tuple[KilledRunner, ...] = ()


NONE = FailedTests()

OUT_OF_MEMORY = 137
"""The exit code of a command that got the signal KILL, as of one that takes too much memory."""

WORDS = {
    Standing.NEW: "new failure",
    Standing.SEEN: "failed before",
    Standing.FLAKY: "known flaky",
    Standing.BROKEN: "broken before this PR",
    Standing.EXCUSED: "failed, excused",
}
"""The text for each kind of failed test."""

_OLD = frozenset({Standing.SEEN, Standing.BROKEN})
"""Kinds of which the target branch says more."""


def known_of(test: FailedTest) -> Phrase:
    """Return what is known of a failed test: `known flaky, also fails on main`."""
    known = [Phrase((WORDS[test.standing],))]
    if test.fails_on:
        known = [] if test.standing in _OLD else known
        known.append(phrase("also fails on {}", test.fails_on))
    if test.is_new_text:
        known.append(phrase("new failure text"))
    return phrases.joined(known, ", ")


def section(tests: FailedTests, links: Links, now: datetime) -> str:
    """The tests section; empty when no test failed and no runner was killed.

    At most five tests are named.
    """
    killed = [f"⚠️ {markdown.markdown(each, links)}" for each in killed_runners(tests.killed)]
    return "\n\n".join([*killed, *filter(None, [_tests(tests, links, now)])])


def killed_runners(killed: Sequence[KilledRunner]) -> list[Phrase]:
    """Return one sentence for each test runner that was killed, of at most five."""
    return [_killed(each) for each in killed[: phrases.NAMES_SHOWN_MAX]]


def _killed(one: KilledRunner) -> Phrase:
    where = phrase(" in job {}", one.job) if one.job else Phrase()
    code = phrase(" (exit code {})", one.exit_code) if one.exit_code else Phrase()
    why = phrase(", as when its memory runs out") if one.exit_code == OUT_OF_MEMORY else Phrase()
    killed = phrase("The test runner {} was killed", one.runner)
    return killed + where + why + code + phrase(": it began and never said how it ended.")


def _tests(tests: FailedTests, links: Links, now: datetime) -> str:
    if not tests.shown:
        return ""
    parts = {"failed": tests.failed, "excused": tests.excused}
    counts = " · ".join(f"{number:,} {word}" for word, number in parts.items() if number)
    shown = tests.shown[: phrases.NAMES_SHOWN_MAX]
    lines = [_line(each, links, now) for each in shown]
    left = tests.failed + tests.excused - len(shown)
    if left > 0:
        lines.append(f"- and {left:,} more")
    listed = "\n".join(lines)
    gaps = "".join(f"\n\n{_gap(name, reasons)}" for name, reasons in tests.gaps)
    gaps += "".join(f"\n\n{_revoked(name)}" for name in tests.revoked)
    if len(lines) > OPEN_MAX:
        return markdown.folded(f"Tests: {counts}", f"{listed}\n") + gaps
    return f"**Tests:** {counts}\n\n{listed}{gaps}"


def assertions(tests: FailedTests) -> str:
    """Return the tests that are to be mended with what failed in each, at most three."""
    failed = [each for each in tests.shown if each.standing is not Standing.EXCUSED]
    lines = [
        f"- ❌ {markdown.code(each.name)}"
        + (f"\n  {markdown.code(each.message)}" if each.message else "")
        for each in failed[:OPEN_MAX]
    ]
    left = tests.failed - len(lines)
    if left > 0:
        lines.append(f"- and {left:,} more")
    return "\n".join(lines)


def _gap(name: str, reasons: tuple[str, ...]) -> str:
    """Explain why quarantine and known flakes do not excuse a status."""
    shown = "; ".join(reasons[:GAPS_MAX])
    return f"⚠️ {markdown.code(name)} is not excused: its report is incomplete. {shown}."


def _revoked(name: str) -> str:
    """Explain why a status that passed counts as failed."""
    return (
        f"⚠️ {markdown.code(name)} passed, but counts as failed. Its command ended with 0 because"
        " all failures were quarantined, and another failure arrived later."
    )


def after_landing(job: str, names: Sequence[str], upload_url: str) -> str:
    """A comment: failures arrived after the pull request merged, and earlier ones were excused."""
    shown = [f"- ❌ {markdown.code(name)}" for name in names[: phrases.NAMES_SHOWN_MAX]]
    if len(names) > len(shown):
        shown.append(f"- and {len(names) - len(shown):,} more")
    return (
        f"⚠️ Results of {markdown.code(job)} arrived after it merged, with failures that are not"
        " quarantined. The failures that the job had reported before were all quarantined, so the"
        f" queue did not know. Please look at the target branch.\n\n{chr(10).join(shown)}\n\n"
        f"[Upload]({upload_url})"
    )


def _line(test: FailedTest, links: Links, now: datetime) -> str:
    glyph = "🟦" if test.standing is Standing.EXCUSED else "❌"
    what = markdown.markdown(known_of(test), links)
    facts = _facts(test, now)
    line = f"- {glyph} {markdown.code(test.name)}: *{what}*{facts}{_links(test, links)}"
    is_named = test.message and test.standing is not Standing.EXCUSED
    return f"{line}\n  {markdown.code(test.message)}" if is_named else line


def _facts(test: FailedTest, now: datetime) -> str:
    if test.standing is Standing.EXCUSED:
        until = "" if test.until is None else f" until {times.day_of(test.until, now)}"
        return f" (quarantined{until})"
    if test.standing is Standing.NEW:
        return ""
    prs = f"{test.prs_hit:,} PR{'' if test.prs_hit == 1 else 's'} affected"
    return f", {_percent(test.week_rate)} of runs this week, {prs}"


def _percent(share: float) -> str:
    return "under 1%" if 0 < share < 0.01 else f"{share * 100:.0f}%"


def _links(test: FailedTest, links: Links) -> str:
    """` ([log](…), [history](…))`, as far as there are such pages to which we link."""
    pages = {"log": test.log, "history": test.page}
    found = [
        f"[{word}]({address})"
        for word, url in pages.items()
        if url and (address := markdown.linkable(url, links)) is not None
    ]
    return f" ({', '.join(found)})" if found else ""
