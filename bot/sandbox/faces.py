"""The faces of GitHub: what it has been seen to do in two ways, and which of them a sandbox plays.

GitHub's descriptions and examples of today show the first way of each, which is the default.
Deliveries that github.com sent from 2020 to 2022 show the second. Which one a repository meets
today is not known for sure, so nothing may depend on it.
"""

import random
from dataclasses import dataclass

JITTER_S = 2.0


@dataclass(frozen=True, slots=True)
class Face:
    """The way in which GitHub shows what happened, and the moment at which it sends it.

    `hides_app`: `performed_via_github_app` is null, also in what an App wrote.
    `reports_as_author`: the sender of a check event is the author of the commit, not the App.
    `has_no_draft_state`: the merge state of a draft is that of any pull request, not DRAFT.
    `shows_mergeable`: events about a new head contain its mergeability already, and those about
    a closed pull request its merge state.
    `jitter_s`: each delivery is delayed by at most so many seconds, drawn by `seed`, so that it may
    overtake others. It never arrives before what caused it.
    """

    hides_app: bool = False
    reports_as_author: bool = False
    has_no_draft_state: bool = False
    shows_mergeable: bool = False
    jitter_s: float = 0.0
    seed: str = ""


PLAIN = Face()
"""Everything in the first way, and each delivery at once."""

RECORDED = Face(True, True, True, True)
"""Everything in the second way, and each delivery at once."""


def drawn(seed: str) -> Face:
    """Return the face of a seed: each behavior in one of its ways, deliveries in any order."""
    chance = random.Random(seed)  # noqa: S311 - chance of a game, not of a key
    one, two, three, four = (chance.random() < 0.5 for _ in range(4))
    return Face(one, two, three, four, JITTER_S, seed)
