"""The trees on which CI ran, as CI itself says, held against what came onto the target.

Knows nothing of plans: a tree counts if the required checks of CI passed on a commit with it.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from bot.sandbox.world import Repository

OURS = "headgate"
PROOF = "its tree `{}` is the tree that was tested"
UNTESTED = ("untested_tip", "base_red")
"""Holds that stop a queue whose target stands on a tree without a passed test."""

Conclusions = Mapping[str, Mapping[str, set[str]]]
"""By tree and name of a check: how it concluded there."""


def conclusions(repository: Repository) -> Conclusions:
    """Return how the checks of CI concluded on each tree that they ran on."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    tested = {id(run.suite): run.tested_sha for run in repository.workflow_runs}
    reported = [
        (tested.get(id(suite), suite.head_sha), check.name, check.conclusion)
        for suites in repository.suites.values()
        for suite in suites
        if suite.app.slug != OURS
        for check in suite.runs
        if check.conclusion is not None
    ]
    reported += [
        (one.sha, one.context, one.state) for every in repository.statuses.values() for one in every
    ]
    for sha, name, conclusion in reported:
        commit = repository.git.objects.commit(sha)
        if commit is not None:
            found[commit.tree][name].add(conclusion)
    return found


def untested(
    repository: Repository, moves: list[Any], rows: dict[str, list[Any]], holds: set[str]
) -> Iterator[str]:
    """I1: each tree that we gave the target passed CI, or the rest of its unit followed at once.

    Else the queue has said so by a hold, and CI has run on that tip or on one after it.
    """
    concluded = conclusions(repository)
    landed = {row.landed_sha: row for row in rows["landing"] if row.state == "landed"}
    for place, move in enumerate(moves):
        row = landed.get(move.after)
        commit = repository.git.objects.commit(move.after)
        if row is None or commit is None or _is_beside_others(repository, rows, row, commit):
            continue
        if _has_passed(concluded, rows, row, commit.tree):
            continue
        yield from _false_words(repository, row, commit.tree)
        following = moves[place + 1] if place + 1 < len(moves) else None
        next_row = landed.get(following.after) if following is not None else None
        if next_row is not None and next_row.run == row.run:
            continue
        if not holds & set(UNTESTED):
            yield f"I1: {move.after} has a tree on which CI never passed, and nothing holds"
        elif following is None and commit.tree not in concluded:
            yield f"I1: CI never ran on the tip {move.after}"


def _has_passed(concluded: Conclusions, rows: dict[str, list[Any]], row: Any, tree: str) -> bool:
    run = next(one for one in rows["run"] if one.id == row.run)
    names = {one["name"] for one in _json(run.required)}
    excused = set(_json(run.excused))
    words = concluded.get(tree, {})
    ran = {name for name in names if words.get(name, set()) - {"skipped", "neutral"}}
    failed = {name for name in ran - excused if "success" not in words[name]}
    return not failed and bool(ran or not names)


def _is_beside_others(
    repository: Repository, rows: dict[str, list[Any]], row: Any, commit: Any
) -> bool:
    """Whether it landed beside another lane: then the tested change is compared, not the tree."""
    run = next(one for one in rows["run"] if one.id == row.run)
    return _json(run.config)["mode"] == "PARALLEL" and commit.tree != row.expected_tree


def _false_words(repository: Repository, row: Any, tree: str) -> Iterator[str]:
    for comment in repository.issues[row.pr].comments:
        if PROOF.format(tree[:7]) in comment.body:
            yield f"I1: #{row.pr} is told that {tree[:7]}, on which CI never passed, was tested"


def _json(text: Any) -> Any:
    return json.loads(text)
