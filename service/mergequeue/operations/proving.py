"""Prove that what landed is what was tested. Decides on values, reads nothing."""

from dataclasses import dataclass

from service.mergequeue.engine.model import LandMode, Proof
from service.mergequeue.engine.outputs import Land, LandStep
from service.provider.port import Provider
from service.provider.trees import (
    Different,
    Disjoint,
    Overlapping,
    Same,
    TreeChange,
    Unproven,
)
from service.provider.values import (
    Commit,
    Merged,
)
from service.vocabulary import MergeMethod, RepoRef, Sha


@dataclass(frozen=True, slots=True)
class Proved:
    """Each position with the commit and tree it landed as.

    `above` is the fresh tip when others have pushed on top.
    """

    landed: tuple[tuple[LandStep, Sha, Sha], ...]
    above: Commit | None


@dataclass(frozen=True, slots=True)
class Unproved:
    """The reason why the landing is not proven; `cause` foreign_push or other_tree."""

    cause: str
    text: str


def proof_of(action: Land, merged: Merged) -> Proved | Unproved:
    """Compare a read-back landing with the tested prefix.

    The landed commit must stand on the first-parent walk from the fresh tip to the expected
    parent, with exactly the commits this landing may add, and the tested tree; where others
    have landed since the base, `changes.py` compares what it changed instead.
    """
    chain = merged.chain
    if chain == ():
        return Unproved(
            "foreign_push",
            f"{merged.commit} has landed, and the target is at {action.expected_tip.sha} again, "
            "where it was before.",
        )
    if chain is None:
        return Unproved(
            "foreign_push",
            f"{merged.commit} does not lead back to the expected parent "
            f"{action.expected_tip.sha} within 250 commits.",
        )
    oldest_first = tuple(reversed(chain))
    place = next((i for i, one in enumerate(oldest_first) if one.sha == merged.commit), None)
    if place is None:
        return Unproved(
            "foreign_push",
            f"{merged.commit} is not on the first-parent walk of the target.",
        )
    own, above = oldest_first[: place + 1], oldest_first[place + 1 :]
    fault = _advance_fault(action, own) if action.mode is LandMode.CAS else _call_fault(action, own)
    if fault is not None:
        return Unproved(fault[0], fault[1])
    return Proved(_positions(action, own), above[-1] if above else None)


def _advance_fault(action: Land, own: tuple[Commit, ...]) -> tuple[str, str] | None:
    """Return the target must now run through the tested commits themselves."""
    tested = {step.commit: step.tree for step in action.steps}
    last = own[-1]
    if last.sha != action.steps[-1].commit:
        return "foreign_push", f"the target is at {last.sha}, not at {action.steps[-1].commit}"
    for commit in own:
        tree = tested.get(commit.sha)
        if tree is not None and tree != commit.tree:
            return "other_tree", f"{commit.sha} has tree {commit.tree}, tested was {tree}"
    return None


def _call_fault(action: Land, own: tuple[Commit, ...]) -> tuple[str, str] | None:
    """One merge call adds one commit (squash, merge) or a pull request's commits (rebase).

    For members of a stack, so many for each, from the bottom up.
    """
    if action.method is not MergeMethod.REBASE and len(own) > len(action.steps):
        strangers = ", ".join(commit.sha for commit in own[: -len(action.steps)])
        return "foreign_push", f"commits of others stand below {own[-1].sha}: {strangers}"
    if own[0].parents[:1] != (action.expected_tip.sha,):
        return "foreign_push", f"{own[0].sha} does not stand on {action.expected_tip.sha}"
    if len(own) < len(action.steps):
        return "foreign_push", f"only {len(own)} of {len(action.steps)} pull requests landed"
    for step, landed in zip(action.steps, _last_of_each(action, own), strict=True):
        if landed is None:
            return "other_tree", f"no commit has the tree {step.tree}, with which it was tested"
        if action.method is MergeMethod.MERGE_COMMIT and landed.parents[1:] != (step.head,):
            return "foreign_push", f"{landed.sha} does not merge {step.head}"
        if action.method is MergeMethod.SQUASH and len(landed.parents) != 1:
            return "foreign_push", f"{landed.sha} has {len(landed.parents)} parents, not one"
        if action.proof is Proof.EXACT_TREE and landed.tree != step.tree:
            return "other_tree", f"{landed.sha} has tree {landed.tree}, tested was {step.tree}"
    return None


def _last_of_each(action: Land, own: tuple[Commit, ...]) -> list[Commit | None]:
    """Return the commit with which each pull request ends, by its tree where it has several."""
    if action.method is not MergeMethod.REBASE:
        return list(own)
    left = iter(own[:-1])
    found = [
        next((commit for commit in left if commit.tree == step.tree), None)
        for step in action.steps[:-1]
    ]
    return [*found, own[-1]]


def _positions(action: Land, own: tuple[Commit, ...]) -> tuple[tuple[LandStep, Sha, Sha], ...]:
    if action.mode is LandMode.CAS:
        return tuple((step, step.commit, step.tree) for step in action.steps)
    ends = zip(action.steps, _last_of_each(action, own), strict=True)
    return tuple((step, commit.sha, commit.tree) for step, commit in ends if commit is not None)


PATHS_MAX = 20
"""Paths that a sentence names; the provider finds at most 200."""


async def overlap_of(provider: Provider, repo: RepoRef, action: Land) -> str | None:
    """Return a sentence about paths that others changed as well; None if there are none.

    What others have landed lies between the prefix before each step and the tip: what the run
    itself has landed of its base and its earlier steps is in both.
    """
    if action.proof is not Proof.SAME_CHANGE:
        return None
    for step in action.steps:
        others = TreeChange(step.parent_tree, action.expected_tip.tree)
        found = await provider.overlap(repo, others, _tested_change(step))
        if not isinstance(found, Disjoint):
            return _overlap_text(step.pr, found)
    return None


async def proved_of(
    provider: Provider, repo: RepoRef, action: Land, outcome: Proved
) -> Proved | Unproved:
    """Return the proof again, unless another change landed than was tested."""
    if action.proof is not Proof.SAME_CHANGE:
        return outcome
    before = action.expected_tip.tree
    for step, sha, tree in outcome.landed:
        found = await provider.same_change(repo, _tested_change(step), TreeChange(before, tree))
        if not isinstance(found, Same):
            return Unproved("other_change", f"{sha} is not the tested change: {_paths_text(found)}")
        before = tree
    return outcome


def _overlap_text(pr: int, found: Overlapping | Unproven) -> str:
    if isinstance(found, Unproven):
        apart = "is not known to be apart from what landed beside it"
        return f"Pull request {pr} {apart}: {found.reason}."
    return f"Pull request {pr} and what landed beside it both change {_paths_text(found)}."


def _tested_change(step: LandStep) -> TreeChange:
    return TreeChange(step.parent_tree, step.tree)


def _paths_text(found: Overlapping | Different | Unproven) -> str:
    match found:
        case Unproven(reason=reason):
            return f"not proven, {reason}"
        case Overlapping(paths=paths) | Different(paths=paths):
            more = "" if len(paths) <= PATHS_MAX else f" and {len(paths) - PATHS_MAX} more"
            return ", ".join(paths[:PATHS_MAX]) + more
