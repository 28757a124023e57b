"""Describe what the queue believes of a pull request whose tests failed, with its evidence.

See docs/explanation/belief.md.
"""

from service.mergequeue.engine.suspicion import FailedTogether, Fate, Suspicion
from service.text import markdown, phrases, times
from service.text.phrases import Phrase, phrase

FATES: dict[Fate, str] = {
    Fate.MERGED: "merged",
    Fate.PASSED: "passed",
    Fate.LEFT: "left the queue",
    Fate.UNDECIDED: "",
}
"""The participle of each fate, before "since"; an undecided one has none."""


def message(believed: Suspicion) -> str:
    """The same as `sentence`, without links."""
    return markdown.plain(sentence(believed))


def sentence(believed: Suspicion | None) -> Phrase:
    """Return the chance that it is broken and why; empty for a pull request that is no suspect.

    `97 % to blame: failed alone once, failed with #12, which has merged since.`
    """
    if believed is None:
        return Phrase()
    evidence = [_failed_with(one) for one in believed.newest_together]
    if believed.alone:
        evidence.insert(0, Phrase((f"failed alone {times.times(believed.alone)}",)))
    if older := believed.together - len(believed.newest_together):
        evidence.append(phrase("failed with others {} before", Phrase((times.times(older),))))
    listed = phrases.joined(evidence, ", ")
    return phrase("{} % to blame: {}.", believed.percent, listed)


def _failed_with(run: FailedTogether) -> Phrase:
    pulls = [phrases.pulls((one.pr,)) for one in run.others]
    more = [phrase("{} more", run.more)] if run.more else []
    clause = phrase("failed with {}", phrases.listed([*pulls, *more], len(pulls) + 1))
    fates = {one.fate for one in run.others}
    if len(fates) == 1 and not run.more:
        (fate,) = fates
        numbers = [one.pr for one in run.others]
        word = FATES[fate]
        return clause + phrase(f", which {_have(numbers)} {word} since") if word else clause
    parts = []
    for fate, word in FATES.items():
        numbers = [one.pr for one in run.others if one.fate is fate]
        if numbers and word:
            parts.append(phrase(f"{{}} {_have(numbers)} {word}", phrases.pulls(numbers)))
    if not parts:
        return clause
    return clause + phrase(", of which {} since", phrases.listed(parts, len(parts)))


def _have(numbers: list[int]) -> str:
    return "has" if len(numbers) == 1 else "have"
