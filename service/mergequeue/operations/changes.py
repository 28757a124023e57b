"""Whether a landing between those of other lanes is still the change that was tested.

Others have landed since its base, so its tree is another one than was tested: before the
permit the paths must be disjoint, afterwards the change must be the same (GITHUB.md 5.4).
"""

from service.mergequeue.engine.model import Proof
from service.mergequeue.engine.outputs import Land, LandStep
from service.mergequeue.operations.proving import Proved, Unproved
from service.provider.port import Provider
from service.provider.trees import (
    Change,
    Different,
    Disjoint,
    Overlapping,
    Same,
    Unproven,
)
from service.vocabulary import RepoRef

PATHS_MAX = 20
"""Paths that a sentence names; the provider finds at most 200."""


async def overlap_of(provider: Provider, repo: RepoRef, action: Land) -> str | None:
    """What others changed of the paths that this landing changes; None: nothing.

    What others have landed lies between the prefix before each step and the tip: what the run
    itself has landed of its base and its earlier steps is in both.
    """
    if action.proof is not Proof.SAME_CHANGE:
        return None
    for step in action.steps:
        others = Change(step.parent_tree, action.expected_tip.tree)
        found = await provider.overlap(repo, others, _tested(step))
        if not isinstance(found, Disjoint):
            return _sentence(step.pr, found)
    return None


async def proved_of(
    provider: Provider, repo: RepoRef, action: Land, outcome: Proved
) -> Proved | Unproved:
    """The proof again, unless what landed is another change than was tested."""
    if action.proof is not Proof.SAME_CHANGE:
        return outcome
    before = action.expected_tip.tree
    for step, sha, tree in outcome.landed:
        found = await provider.same_change(repo, _tested(step), Change(before, tree))
        if not isinstance(found, Same):
            return Unproved("other_change", f"{sha} is not the tested change: {_text(found)}")
        before = tree
    return outcome


def _sentence(pr: int, found: Overlapping | Unproven) -> str:
    if isinstance(found, Unproven):
        apart = "is not known to be apart from what landed beside it"
        return f"Pull request {pr} {apart}: {found.reason}."
    return f"Pull request {pr} and what landed beside it both change {_text(found)}."


def _tested(step: LandStep) -> Change:
    return Change(step.parent_tree, step.tree)


def _text(found: Overlapping | Different | Unproven) -> str:
    match found:
        case Unproven(reason=reason):
            return f"not proven, {reason}"
        case Overlapping(paths=paths) | Different(paths=paths):
            more = "" if len(paths) <= PATHS_MAX else f" and {len(paths) - PATHS_MAX} more"
            return ", ".join(paths[:PATHS_MAX]) + more
