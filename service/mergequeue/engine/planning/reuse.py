"""Results without a run: equal trees, a head that was tested itself, nothing new.

See docs/design/testing.md 9.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from service.mergequeue.engine.config import Toggle
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Entry, Green, Run
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import undone
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import RunKind
from service.vocabulary import RequiredName, Sha

Trees = tuple[Sha, ...]

AGE_MAX = timedelta(hours=24)
"""Older results are not reused."""

GREENS_MAX = 1000
"""Trees that a queue remembers."""

KNOWN_TREES_MAX = 200
"""Trees named to the builder of a test branch."""


def digest_of(required: Iterable[RequiredName]) -> str:
    """A short name of a set of required statuses; order does not count."""
    lines = sorted(
        "\n".join((one.name, one.source_id or "", one.kind or "", one.account or ""))
        for one in required
    )
    return hashlib.blake2b("\n\n".join(lines).encode(), digest_size=16).hexdigest()


def remember(draft: Draft, run: Run) -> None:
    """Keep the tree of a run that passed by its own checks.

    Not of a fork's own checks, which its author controls. Not of a run with excused failures,
    which may be red for the next one, or with skipped checks, which the next one may need.
    """
    if not _is_exemplary(draft, run):
        return
    digest = digest_of(run.required)
    tree = run.steps[-1].tree
    green = Green(tree, digest, run.id, run.sha or run.steps[-1].commit, draft.now)
    # Oldest first, also as loaded, so that those to forget are in front.
    known = dict(draft.queue.greens)
    known.pop(_key(tree, digest), None)
    for key, old in draft.queue.greens.items():
        if len(known) < GREENS_MAX and _is_young(old, draft.now):
            break
        known.pop(key, None)
    known[_key(tree, digest)] = green
    draft.put_queue(replace(draft.queue, greens=known))


def has_passed(draft: Draft, tree: Sha) -> bool:
    """Return whether this tree has passed what is required now, lately."""
    required = draft.queue.required
    if required is None:
        return False
    green = draft.queue.greens.get(_key(tree, digest_of(required.names)))
    return green is not None and _is_young(green, draft.now)


def forget(draft: Draft, run: Run) -> None:
    """Remove the trees that this run proved."""
    greens = draft.queue.greens
    left = {key: green for key, green in greens.items() if green.run != run.id}
    if len(left) < len(greens):
        draft.put_queue(replace(draft.queue, greens=left))


def green_of(draft: Draft, run: Run) -> Green | None:
    """The earlier result that proves the run's last tree, if it may be used."""
    if run.fresh or not run.config.result_reuse_enabled or not run.steps:
        return None
    green = draft.queue.greens.get(_key(run.steps[-1].tree, digest_of(run.required)))
    return green if green is not None and _is_young(green, draft.now) else None


def known_trees(draft: Draft) -> Trees:
    """Trees that passed what is required now and need no test, newest first."""
    queue = draft.queue
    if not queue.config.result_reuse_enabled or queue.required is None:
        return ()
    if draft.known_trees is None:
        digest = digest_of(queue.required.names)
        oldest = draft.now - AGE_MAX
        greens = [
            green
            for green in queue.greens.values()
            if green.at > oldest and green.required == digest
        ]
        greens.sort(key=lambda green: green.at, reverse=True)
        draft.known_trees = tuple([green.tree for green in greens[:KNOWN_TREES_MAX]])
    return draft.known_trees


def may_land_directly(draft: Draft, entry: Entry, required: tuple[RequiredName, ...]) -> bool:
    """Return whether the entry's own head is the tip with its change, and was tested as such."""
    tip, facts = draft.queue.tip, entry.facts
    if draft.queue.config.direct_merge_mode != Toggle.ALWAYS or entry.fresh:
        return False
    if undone.may_be_judged(draft.queue.config, entry):
        return False
    if tip is None or facts.contains_tip != tip.sha or facts.head_tree is None:
        return False
    ran = draft.queue.check_history.ran_lately(draft.now)
    skippable = ran | frozenset(draft.queue.config.optional_statuses)
    return verdict.is_covered(facts.own_checks, required, skippable)


def _is_exemplary(draft: Draft, run: Run) -> bool:
    if not run.steps or run.excused or run.reused_from is not None or run.contained:
        return False
    if verdict.skipped_of(run):
        return False
    if run.kind is not RunKind.DIRECT:
        return True
    return not any(entry.facts.is_fork for entry in draft.tested(run))


def _is_young(green: Green, now: datetime) -> bool:
    return green.at + AGE_MAX > now


def _key(tree: Sha, digest: str) -> str:
    return f"{tree}:{digest}"
