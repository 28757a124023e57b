"""The audit of a world, as `headgate audit` makes it: nothing that happened may be a fault.

Also for simulations: `findings_of` takes the store and the folder of each repository.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from bot.cli.auditing import evidence, history
from bot.cli.verifying.repository import Repository
from service.accounts.store import signing_keys
from service.database.database import Store
from service.mergequeue.auditing.audit import audit
from service.mergequeue.auditing.findings import Audit, Finding, Rule, Weight
from service.mergequeue.store import auditing
from tests.harness.world import REPO, World

OURS = "headgate"


async def audit_of(world: World) -> list[Audit]:
    """The audits of all queues of a world, against the repository itself."""
    return await audits_of(world.runtime.store, {REPO: world.repository.git.folder})


async def audits_of(store: Store, folders: Mapping[str, Path]) -> list[Audit]:
    """The audits of all queues whose repository has a folder here, by owner and name."""
    keys = await store.read(signing_keys.all_keys)
    made = []
    for rows in await store.read(auditing.rows_of_queues):
        folder = folders.get(rows.queue.repo.slug)
        signed, waiting = await store.read(auditing.evidence_of, rows.queue.id)
        found = None
        if folder is not None:
            found = await asyncio.to_thread(history.read, Repository(folder), rows)
        made.append(audit(rows, found, evidence.read(signed, waiting, keys)))
    return made


async def faults_of(store: Store, folders: Mapping[str, Path]) -> list[str]:
    """What an audit finds that no history may have, one line for each."""
    audits = await audits_of(store, folders)
    return [line_of(one) for each in audits for one in each.findings if is_fault(one)]


async def faults_of_story(world: World) -> list[str]:
    """The same of a world; a landing may be gone if somebody has rewritten the target."""
    repository = world.repository
    audits = await audit_of(world)
    moves = [one for one in world.sandbox.world.reflog if one.app != OURS]
    git = Repository(repository.git.folder)
    is_rewritten = any(
        not git.contains(move.after, move.before)
        for move in moves
        if move.repository == repository.full_name and move.ref == "refs/heads/main"
    )
    return [
        line_of(one)
        for each in audits
        for one in each.findings
        if is_fault(one) and not (is_rewritten and one.rule is Rule.LANDING_NOT_ON_BRANCH)
    ]


def is_fault(finding: Finding) -> bool:
    """Whether something is not as promised."""
    return finding.rule.weight is Weight.FAULT


def line_of(finding: Finding) -> str:
    """A finding as a line."""
    return f"{finding.rule.title}: {finding.text}"
