"""The checker of histories: what really happened, held against what was promised.

Reads the sandbox's reflog, commits, checks and calls, and the service's rows; knows nothing of
engine or adapter. Each broken promise is a line that names its invariant
(docs/design/invariants.md).
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import select

from bot.sandbox import standing
from bot.sandbox.app import Sandbox
from bot.sandbox.git import Commit, Objects, TreeItem
from bot.sandbox.world import Repository
from service.database.database import Store, Tx
from service.database.tables_deliveries import JournalRow, OutboxRow
from service.mergequeue.store.tables_queues import EntryRow, LandingRow, RunRow
from tests.harness import tested_trees

MAIN = "refs/heads/main"
OURS = "headgate"
FINAL = {"MERGED", "FAILED", "CANCELLED"}


async def broken_promises(sandbox: Sandbox, store: Store, repo: str) -> list[str]:
    """Every promise that this history breaks; a world that has come to rest breaks none."""
    repository = sandbox.world.repository(repo)
    assert repository is not None
    rows = await store.read(_rows)
    return [
        *_target(sandbox, repository, rows),
        *_checks(repository, rows),
        *_entries(rows),
        *_effects(rows, sandbox.world.now()),
        *_leaks(repository, rows),
    ]


def _rows(session: Tx) -> dict[str, list[Any]]:
    tables = {
        "landing": LandingRow.__table__,
        "run": RunRow.__table__,
        "entry": EntryRow.__table__,
        "outbox": OutboxRow.__table__,
        "journal": JournalRow.__table__,
    }
    return {name: list(session.execute(select(table))) for name, table in tables.items()}


def _target(sandbox: Sandbox, repository: Repository, rows: dict[str, list[Any]]) -> Iterator[str]:
    """I1, I3, I5, I13: every tip our App gave the target is one proved landing, once."""
    landed = {row.landed_sha: row for row in rows["landing"] if row.state == "landed"}
    moves = [one for one in sandbox.world.reflog if one.ref == MAIN and one.app == OURS]
    ours = {one.after: one for one in moves if one.repository == repository.full_name}
    for after, move in ours.items():
        row = landed.get(after)
        if row is None:
            yield f"I1: {after} came onto main by us without a landing"
            continue
        commit = repository.git.objects.commit(after)
        if commit is None or not _is_tested(repository, rows, row, commit):
            yield f"I1: {after} has another tree than was tested"
        if move.before != row.expected_parent and row.position == 1:
            yield f"I3: {after} stands on {move.before}, not on {row.expected_parent}"
    holds = {row.reason for row in rows["journal"] if row.event == "HoldPlaced"}
    yield from tested_trees.untested(repository, list(ours.values()), rows, holds)
    keys = [(row.pr, row.head) for row in landed.values()]
    if len(keys) != len(set(keys)):
        yield "I13: one head landed twice"


def _is_tested(
    repository: Repository, rows: dict[str, list[Any]], row: Any, commit: Commit
) -> bool:
    """Whether it landed the tested tree or, beside another lane, exactly the tested change."""
    if commit.tree == row.expected_tree:
        return True
    objects = repository.git.objects
    run = next(one for one in rows["run"] if one.id == row.run)
    steps, tip = json.loads(run.steps), json.loads(run.base_tip)
    before = steps[row.position - 2]["tree"] if row.position > 1 else tip["tree"]
    parent = objects.a_commit(commit.parents[0]).tree
    is_lane = json.loads(run.config)["mode"] == "PARALLEL"
    tested = _change(objects, before, row.expected_tree)
    return is_lane and tested == _change(objects, parent, commit.tree)


def _change(objects: Objects, before: str, after: str) -> dict[str, TreeItem | None]:
    """What a tree has that another had not or had differently; None for what is gone."""
    old, new = dict(objects.walk(before)), dict(objects.walk(after))
    paths = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    return {path: new.get(path) for path in paths}


def _checks(repository: Repository, rows: dict[str, list[Any]]) -> Iterator[str]:
    """I2: what landed passed every required check on its tested commit, as CI itself says.

    But for those that only quarantined tests failed, and those that CI skipped on the pull
    request's own head as well while another required check ran.
    """
    runs = {row.id: row for row in rows["run"]}
    for row in rows["landing"]:
        run = runs[row.run]
        if row.state != "landed" or run.reused_from is not None or not run.published:
            continue
        passed = {one.name for one in repository.check_runs(run.sha) if one.conclusion == "success"}
        statuses = standing.latest_statuses(repository, run.sha)
        passed |= {one.context for one in statuses if one.state == "success"}
        required = {one["name"] for one in json.loads(run.required)}
        excused = set(json.loads(run.excused))
        skipped = _skipped(repository, run.sha) & _skipped(repository, row.head)
        missing = required - passed - excused - skipped
        if missing:
            yield f"I2: #{row.pr} landed without {sorted(missing)} on {run.sha}"
        if required and not required & (passed | excused):
            yield f"I2: #{row.pr} landed although no required check ran on {run.sha}"


def _skipped(repository: Repository, sha: str) -> set[str]:
    """Return the names that CI skipped on a commit and never ran there."""
    words: dict[str, set[str | None]] = {}
    for one in repository.check_runs(sha):
        words.setdefault(one.name, set()).add(one.conclusion)
    return {name for name, found in words.items() if found <= {"skipped", "neutral"}}


def _entries(rows: dict[str, list[Any]]) -> Iterator[str]:
    """I13, I15, I16: one live entry a pull request; merged means landed; endings have a why."""
    live = [row.pr for row in rows["entry"] if row.state not in FINAL]
    if len(live) != len(set(live)):
        yield "I13: a pull request is queued twice"
    landed = {row.entry for row in rows["landing"] if row.state == "landed"}
    for row in rows["entry"]:
        by_us = row.reason in {"landed", "landed_directly"}
        if row.state == "MERGED" and by_us and row.id not in landed:
            yield f"I15: #{row.pr} is MERGED without a landing"
        if row.state in {"FAILED", "CANCELLED"} and not row.reason:
            yield f"I16: #{row.pr} ended without a reason"


def _effects(rows: dict[str, list[Any]], now: datetime) -> Iterator[str]:
    """I32: every effect has an end, unless it is new and not due yet."""
    for row in rows["outbox"]:
        is_new = row.state == "ready" and row.attempts == 0 and row.next_at > now
        if row.state not in {"done", "superseded"} and not is_new:
            yield f"I32: effect {row.idem_key} is {row.state}: {row.note}"


def _leaks(repository: Repository, rows: dict[str, list[Any]]) -> Iterator[str]:
    """I35: no branch or draft of ours outlives its run; an open revert is of its break."""
    live = {row.branch for row in rows["run"] if row.live}
    pulls = [one for one in repository.pulls() if one.open and one.head_repo is repository]
    live |= {one.head_ref for one in pulls if one.head_ref.startswith("headgate/revert/")}
    for ref in repository.git.refs:
        branch = ref.removeprefix("refs/heads/")
        is_ours = branch.startswith("headgate/") and not branch.startswith("headgate/green/")
        if is_ours and branch not in live:
            yield f"I35: {branch} was left behind"
    for pull in repository.pulls():
        is_ours = pull.head_repo is repository and pull.head_ref.startswith("headgate/")
        if is_ours and pull.open and pull.head_ref not in live:
            yield f"I35: draft #{pull.number} was left open"
