"""Branches and commits: tip, ancestry, and the first parents between two commits."""

from bot.github import answers, paths
from bot.github.line import Line
from bot.github.remembered import Remembered
from service.provider.values import (
    Commit,
)
from service.vocabulary import Sha

CHAIN_MAX = 250  # commits between a landing's parent and the tip
COMPARE_PAGE = 100
ABSENT = (404, 409, 422)  # missing; the repository is empty; not a commit
REACHED = frozenset({"ahead", "identical"})


async def tip(line: Line, remembered: Remembered, branch: str) -> Commit | None:
    """The newest commit of a branch, read afresh; None when it does not exist."""
    answer = await line.get(f"/commits/{paths.of_head(branch)}", expects=ABSENT)
    if answer.status in ABSENT:
        await _confirm(line, answer.status)
        return None
    return remembered.keep_commit(line.repo, answers.commit_of(answer.fields))


async def commit(line: Line, remembered: Remembered, sha: Sha) -> Commit | None:
    """One commit, read once in a process; None when GitHub does not know it."""
    known = remembered.commit(line.repo, sha)
    if known is not None:
        return known
    answer = await line.get(f"/git/commits/{sha}", expects=ABSENT)
    if answer.status in ABSENT:
        await _confirm(line, answer.status)
        return None
    return remembered.keep_commit(line.repo, answers.commit_of(answer.fields))


async def head_of(line: Line, branch: str, *, is_awaited: bool = False) -> Sha | None:
    """Where a branch points now, None when it does not exist.

    `is_awaited`: it is about to appear, so its absence says nothing about the repository.
    """
    answer = await line.get(f"/git/ref/{paths.of_head(branch)}", expects=ABSENT)
    if answer.status in ABSENT:
        if not is_awaited:
            await _confirm(line, answer.status)
        return None
    return answers.ref_of(answer.fields)[1]


async def contains(line: Line, ancestor: Sha, descendant: Sha) -> bool:
    """Whether `ancestor` is `descendant` or reachable from it; unknown commits are not."""
    if ancestor == descendant:
        return True
    tail = f"/compare/{ancestor}...{descendant}"
    answer = await line.get(tail, {"per_page": 1}, expects=ABSENT)
    if answer.status in ABSENT:
        await _confirm(line, answer.status)
        return False
    return answer.fields.text("status") in REACHED


async def chain(
    line: Line, remembered: Remembered, newest: Commit, expect: Sha
) -> tuple[Commit, ...] | None:
    """First parents from `newest` back to, but without, `expect`.

    None when that is not met within 250 commits.
    """
    if newest.sha == expect:
        return ()
    if newest.parents[:1] == (expect,):
        return (newest,)
    between = await _between(line, remembered, expect, newest.sha)
    found: list[Commit] = [newest]
    while found[-1].parents and len(found) < CHAIN_MAX:
        parent = found[-1].parents[0]
        if parent == expect:
            return tuple(found)
        if parent not in between:
            return None
        found.append(between[parent])
    return None


async def _between(line: Line, remembered: Remembered, base: Sha, head: Sha) -> dict[Sha, Commit]:
    """Commits reachable from `head` and not from `base`, as many as a chain can need."""
    found: dict[Sha, Commit] = {}
    tail = f"/compare/{base}...{head}"
    for page in range(1, CHAIN_MAX // COMPARE_PAGE + 3):
        answer = await line.get(tail, {"per_page": COMPARE_PAGE, "page": page}, expects=ABSENT)
        if answer.status in ABSENT:
            return found
        listed = answer.fields.each("commits")
        for each in listed:
            one = answers.commit_of(each)
            found[one.sha] = remembered.keep_commit(line.repo, one)
        if len(listed) < COMPARE_PAGE:
            break
    return found


async def _confirm(line: Line, status: int) -> None:
    """A 404 may mean that the whole repository is gone: that is an error, not an absence."""
    if status == 404:
        await line.get("")
