"""Find the reason for a refused push in what GitHub and git wrote (docs/design/git-builds.md 5).

Words of GitHub: https://github.com/ejoffe/spr/issues/422 has the whole output of a refused push,
and tests/github/refusals.toml the other sentences with their sources.
"""

import re

from bot.github import limits
from bot.github.gitbuild.command import WORDS_MAX
from bot.github.gitbuild.mirror import Reason, Unusable

_REMOTE = "remote: "
_OF_REF = re.compile(r"error: GH\d{3}: .* for (?P<ref>refs/\S+?)\.?$")
_SENTENCE = re.compile(r"- (?P<words>.+)")
_REFS_MAX = re.compile(r"pushes can ?not update more than (?P<most>\d+) ", re.IGNORECASE)

# Parts of the words (lower case, without backticks), the first that fits.
_REASONS = (
    ("rule violations", Reason.PUSH_RULE),
    ("protected branch", Reason.PUSH_RULE),
    ("hook declined", Reason.PUSH_HOOK),
    ("denied to", Reason.PUSH_DENIED),
    ("error: 403", Reason.PUSH_DENIED),
    ("(failed)", Reason.PUSH_BUSY),
    ("(failure)", Reason.PUSH_BUSY),
)
# Neither says that git cannot build the next test branch.
_PASSING = frozenset({Reason.PUSH_BUSY, Reason.PUSH_WORKFLOWS})


def unusable(words: str) -> Unusable:
    """Return the error that the words of a refused branch mean."""
    said = words.lower().replace("`", "")
    if limits.is_about_workflows(said):
        reason = Reason.PUSH_WORKFLOWS
    else:
        reason = next((reason for part, reason in _REASONS if part in said), Reason.PUSH)
    return Unusable(reason, words, is_failure=reason not in _PASSING)


def refs_max_of(errors: str) -> int | None:
    """Return how many refs GitHub lets one push change, if that is why it refused a push."""
    found = _REFS_MAX.search(errors)
    return None if found is None else int(found["most"])


def sentences_of(errors: str, ref: str) -> str:
    """Return what GitHub said of one ref on git's standard error; of no ref, if it named none."""
    said: dict[str, list[str]] = {}
    about = ""
    for line in errors.splitlines():
        words = line.removeprefix(_REMOTE).strip()
        if of_ref := _OF_REF.match(words):
            about = of_ref["ref"]
        elif line.startswith(_REMOTE) and (sentence := _SENTENCE.match(words)):
            said.setdefault(about, []).append(sentence["words"])
    return " ".join(said.get(ref, said.get("", [])))[:WORDS_MAX]
