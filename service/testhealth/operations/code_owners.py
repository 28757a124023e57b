"""Owners of tests by the repository's own CODEOWNERS file (docs/design/reports.md 9).

A sweep over what is due: the file is read when the default branch has touched it and once a
day, new tests get their owners by what was read. Where a repository has no such file, what
uploads send along counts.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.errors import Overloaded
from service.parsers import Stopped
from service.provider.errors import ProviderError, Refused, RefusedCode, Unavailable
from service.provider.port import Provider
from service.provider.trees import TreePaths
from service.runtime import Runtime
from service.testhealth.operations import owning
from service.testhealth.reports import classes, owners
from service.testhealth.reports.classes import Tree
from service.testhealth.store import code_owners
from service.testhealth.store.cases import Place
from service.testhealth.store.code_owners import Claimed, OwnedCase, OwnersText
from service.vocabulary import RepoRef, Sha

FRESH_FOR = timedelta(days=1)
CLASSES_FRESH_FOR = timedelta(hours=1)
"""A new test without a file has the repository's files listed again, at most so often."""
AGAIN_AFTER = timedelta(minutes=15)
"""After trouble, and after a stop in the middle."""
REPOSITORIES_MAX = 20
"""In one sweep, so that others come to their turn."""
PAGE_CASES = 10_000
"""Tests of which the owners are computed at once."""
CASES_AT_ONCE = 1000
"""Tests that are changed in one transaction."""

NO_TREE = classes.tree_of(())

log = structlog.get_logger()


async def branch_moved(
    runtime: Runtime, repository: RepositoryRecord, branch: str, paths: frozenset[str] | None
) -> None:
    """Have the file read anew if the commits that came touch it; `paths` None: they may."""
    is_touched = paths is None or not paths.isdisjoint(owners.PLACES)
    if branch == repository.default_branch and is_touched:
        now = runtime.clock.now()
        await runtime.store.run(code_owners.read_sooner, repository.id, now)


async def look_after(runtime: Runtime) -> None:
    """Sweep: read the files that are stale, give new tests their owners."""
    for _ in range(REPOSITORIES_MAX):
        now = runtime.clock.now()
        claimed = await runtime.store.run(code_owners.claim, now, now + AGAIN_AFTER)
        if claimed is None:
            return
        try:
            await _look_after(runtime, claimed, now)
        except ProviderError as trouble:
            # CODEOWNERS could not be read; it is read again later.
            log.warning(
                "owners_postponed", repository=claimed.place.repository_id, why=trouble.message
            )
            if isinstance(trouble, Unavailable):
                return


async def _look_after(runtime: Runtime, claimed: Claimed, now: datetime) -> None:
    repository = await runtime.store.read(access.repository, claimed.place.repository_id)
    provider = runtime.providers.get(repository.ref.host)
    if not claimed.is_stale:
        await _own_new(runtime, repository.ref, claimed)
    elif provider is not None and repository.available:
        await _read(runtime, provider, repository, claimed)
    await runtime.store.run(code_owners.finish, claimed, now + FRESH_FOR)


async def _own_new(runtime: Runtime, repo: RepoRef, claimed: Claimed) -> None:
    """Give tests that came since the file was read their owners by it."""
    file = claimed.file
    if file.path and file.read_at is not None:
        some = _Owning(claimed.place, repo, file.content, NO_TREE, file.read_at)
        if await _own(runtime, some, file.owned_no):
            at = file.read_at + CLASSES_FRESH_FOR
            await runtime.store.run(code_owners.read_sooner, claimed.place.repository_id, at)


async def _read(
    runtime: Runtime, provider: Provider, repository: RepositoryRecord, claimed: Claimed
) -> None:
    """Read the file and give all tests their owners by it; a file that went takes them along.

    A branch that does not exist says nothing.
    """
    at, ref = runtime.clock.now(), repository.ref
    tip = await provider.tip(ref, repository.default_branch)
    if tip is None:
        return
    tree = await provider.tree_paths(ref, tip.sha)
    file = await _find_file(provider, ref, tip.sha, tree, claimed.file.content)
    await runtime.store.run(code_owners.put, repository.id, file, at)
    log.info("owners_read", repo=ref.slug, path=file.path, has_changed=file != claimed.file.content)
    if file.path or claimed.file.path:
        held = await asyncio.to_thread(classes.tree_of, tree.ids if tree.complete else ())
        await _own(runtime, _Owning(claimed.place, ref, file, held, at), 0)


async def _find_file(
    provider: Provider, ref: RepoRef, commit: Sha, tree: TreePaths, before: OwnersText
) -> OwnersText:
    """The file that counts; what is known of one that has not changed is not read again."""
    places = [path for path in owners.PLACES if path in tree.ids or not tree.complete]
    for path in places:
        blob = tree.ids.get(path, "")
        if blob and (path, blob) == (before.path, before.blob):
            return before
        try:
            content = await provider.read_file(ref, path, commit, owners.BYTES_MAX)
        except Refused as refused:
            if refused.code is not RefusedCode.TOO_LARGE:
                raise
            # Nobody owns anything by it then, as at the hosts.
            return OwnersText(path, blob)
        if content is not None:
            return OwnersText(path, blob, _text(content))
    return OwnersText()


def _text(content: bytes) -> str:
    # PostgreSQL stores no NUL.
    return content.decode("utf-8-sig", "replace").replace("\0", "\ufffd")


@dataclass(frozen=True, slots=True)
class _Owning:
    """By what the tests of a repository get their owners; `read_at` is the file's."""

    place: Place
    repo: RepoRef
    file: OwnersText
    tree: Tree
    read_at: datetime


async def _own(runtime: Runtime, by: _Owning, after_no: int) -> bool:
    """Give the tests after a number their owners; whether the file of some is not known.

    By a file that takes too much to read nobody owns anything.
    """
    here, has_unplaced = by.place.repository_id, False
    while page := await runtime.store.read(code_owners.cases_after, here, after_no, PAGE_CASES):
        try:
            wanted = await _owners_of(runtime, by, page)
        except Stopped as stopped:
            # CODEOWNERS takes too long to evaluate, so tests have no owners.
            log.warning("owners_stopped", repo=by.repo.slug, why=stopped.why)
            by, after_no = replace(by, file=by.file._replace(text="")), 0
            await runtime.store.run(code_owners.put, here, by.file, by.read_at)
            continue
        after_no = page[-1].no
        if not await _store(runtime, by, page, wanted):
            break
        has_unplaced |= any(case.classname and not case.file for case in page)
    return has_unplaced


async def _store(
    runtime: Runtime, by: _Owning, page: Sequence[OwnedCase], wanted: Mapping[int, tuple[str, ...]]
) -> bool:
    """Store other owners of the tests, some at a time; False if the file was read meanwhile."""
    for first in range(0, len(page), CASES_AT_ONCE):
        some = page[first : first + CASES_AT_ONCE]
        changed = {case.no: wanted[case.no] for case in some if case.owners != wanted[case.no]}
        run = runtime.store.run
        if not await run(code_owners.assign_owners, by.place, by.read_at, changed, some[-1].no):
            return False
    return True


async def _owners_of(
    runtime: Runtime, by: _Owning, page: Sequence[OwnedCase]
) -> Mapping[int, tuple[str, ...]]:
    """Return number → owners of the test's file, or of the one that alone may hold its class.

    Raises ProviderError while no parser is free, so that other repositories go first; Stopped.
    """
    file_of = await asyncio.to_thread(_files_of, by.tree, page)
    try:
        of_file = await owning.owners_of(runtime, by.repo, by.file.text, file_of.values())
    except Overloaded as busy:
        raise ProviderError(busy.detail) from busy
    return {no: of_file[file] for no, file in file_of.items()}


def _files_of(tree: Tree, page: Sequence[OwnedCase]) -> dict[int, str]:
    return {case.no: case.file or tree.file_of(case.classname) for case in page}
