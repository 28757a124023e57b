"""Test branches: made on a scratch branch, published whole, shown to CI, deleted (GITHUB.md 3)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bot.github import answers, commits, limits, paths, protection, refs
from bot.github.line import Line
from bot.github.pull_requests import PullRequests
from bot.github.remembered import Remembered
from bot.github.scratch import Scratch, Stopped
from bot.github.wire import Answer
from service.provider.errors import GoneKind, OutcomeUnknown, Refused, RefusedCode, Unavailable
from service.provider.values import (
    BuildRequest,
    BuildResult,
    Built,
    Conflicted,
    Construction,
    NothingToMerge,
    Prefix,
    Vehicle,
    VehicleRef,
)
from service.vocabulary import Mergeability, Sha

STEPS_MAX = 200
TITLE_CHARS_MAX = 250
CONFLICT_PATHS_MAX = 100
RENAME_POLLS_S = (1.0, 1.0, 2.0, 4.0, 8.0, 14.0, 30.0)  # 60 s in all
NO_COMMITS_PAUSE_S = 5.0

Draft = tuple[int, str]


class TestBranches:
    """Builds, finds and removes the branches that runs are tested on."""

    __test__ = False  # not a collection of tests

    def __init__(self, remembered: Remembered, pulls: PullRequests) -> None:
        self._remembered = remembered
        self._pulls = pulls

    async def build(self, line: Line, request: BuildRequest) -> BuildResult:
        """Make, or find and complete, the test branch; safe to repeat after any crash.

        Raises Refused, Gone(PULL_REQUEST), Unavailable.
        """
        if not 0 < len(request.steps) <= STEPS_MAX:
            raise Refused(f"A test branch merges 1 to {STEPS_MAX} heads.", RefusedCode.TOO_MANY)
        try:
            return await self._build_again(line, request)
        except Refused as refused:
            if refused.code is not RefusedCode.OTHER:
                raise
            # The rules of the branch decide, not the sentence.
            if not await protection.forbids_building(line, request.scratch):
                raise
            raise Refused(refused.message, RefusedCode.RULE_DENIED) from refused

    async def discard(self, line: Line, branch: str) -> None:
        """Delete the branch, which closes its draft pull request; absent is done."""
        await refs.repeated(line, lambda: self._discard(line, branch))

    async def restore(self, line: Line, branch: str, sha: Sha) -> None:
        """Put the branch back and open its draft again; raises Refused(NAME_TAKEN)."""
        await refs.repeated(line, lambda: self._restore(line, branch, sha))

    async def vehicles(self, line: Line) -> tuple[VehicleRef, ...]:
        """Every branch under our prefix."""
        listed, _ = await line.listed(f"/git/matching-refs/{paths.of_head(refs.PREFIX)}")
        found = [answers.ref_of(each) for each in listed]
        return tuple(VehicleRef(name.removeprefix(paths.HEADS), sha) for name, sha in found)

    async def _build_again(self, line: Line, request: BuildRequest) -> BuildResult:
        """Build, once more if it is unknown what a call did."""
        try:
            return await self._build(line, request)
        except OutcomeUnknown:
            return await refs.repeated(line, lambda: self._rebuild(line, request))

    async def _build(self, line: Line, request: BuildRequest) -> BuildResult:
        scratch = Scratch(line, self._remembered, request)
        made = await scratch.merged()
        if isinstance(made, Stopped):
            await refs.delete(line, request.scratch)
            return await self._conflict(line, made)
        if all(each.contained for each in _tested(request, made)):
            await refs.delete(line, request.scratch)
            return NothingToMerge()
        if made[-1].tree in request.known_trees:
            return await _built(scratch, request.scratch, made, None)
        taken = await self._publish(line, request, made[-1].commit)
        if taken is not None:
            made = await scratch.completed(taken)
            await refs.delete(line, request.scratch)
        return await self._show(line, request, scratch, made)

    async def _rebuild(self, line: Line, request: BuildRequest) -> BuildResult:
        """Like `_build`, after looking whether the test branch stands there already."""
        tip = await commits.head_of(line, request.branch)
        if tip is None:
            return await self._build(line, request)
        scratch = Scratch(line, self._remembered, request)
        made = await scratch.completed(tip)
        await refs.delete(line, request.scratch)
        return await self._show(line, request, scratch, made)

    async def _show(
        self, line: Line, request: BuildRequest, scratch: Scratch, made: tuple[Prefix, ...]
    ) -> BuildResult:
        """Give the published branch its vehicle."""
        if request.vehicle is Vehicle.PUSH:
            return await _built(scratch, request.branch, made, None)
        try:
            draft = await self._draft(line, request)
        except Refused as refused:
            if refused.code is not RefusedCode.DRAFT_NOT_SUPPORTED:
                raise
            built = await _built(scratch, request.branch, made, None)
            return replace(built, draft_refused=refused.message)
        if draft is None:
            await refs.delete(line, request.branch)
            return NothingToMerge()
        return await _built(scratch, request.branch, made, draft)

    async def _publish(self, line: Line, request: BuildRequest, tip: Sha) -> Sha | None:
        """Let the test branch appear at `tip`; where it points if one was there before."""
        if request.construction is Construction.RENAME_TEMP_BRANCH:
            found = await self._renamed(line, request)
            if found is not None:
                return None if found == tip else found
        if await refs.create(line, request.branch, tip):
            await refs.delete(line, request.scratch)
            return None
        found = await commits.head_of(line, request.branch)
        if found == tip:
            await refs.delete(line, request.scratch)
        return None if found in (tip, None) else found

    async def _renamed(self, line: Line, request: BuildRequest) -> Sha | None:
        """Rename the scratch branch; where the test branch points, None if it never came."""
        tail = f"/branches/{paths.of_branch(request.scratch)}/rename"
        body = {"new_name": request.branch}
        answer = await line.send("POST", tail, body, expects=(403, 404, 409, 422))
        for wait_s in RENAME_POLLS_S if answer.status < 300 else RENAME_POLLS_S[:1]:
            await line.clock.sleep(wait_s)
            found = await commits.head_of(line, request.branch, is_awaited=True)
            if found is not None:
                return found
        return None

    async def _draft(self, line: Line, request: BuildRequest) -> Draft | None:
        """The draft pull request of the branch, made or found; None: nothing to merge."""
        body = {
            "title": request.title[:TITLE_CHARS_MAX],
            "body": request.body,
            "head": request.branch,
            "base": request.target,
            "draft": True,
        }
        empty, absences = 0, iter(limits.YOUNG_WAITS_S)
        while empty < 2:
            answer = await line.create("POST", "/pulls", body, expects=(422,))
            words = answer.message.lower()
            if answer.status < 300:
                number, _, url = answers.pull_ref_of(answer.fields)
                return number, url
            if "already exists" in words:
                return await self._open_draft(line, request.branch, answer)
            if "no commits between" in words:
                empty += 1
                # Our ref may not be visible yet where pull requests are made.
                await line.clock.sleep(NO_COMMITS_PAUSE_S if empty == 1 else 0.0)
                continue
            wait_s = next(absences, None) if "head invalid" in words else None
            if wait_s is None:
                raise line.client.error_of(answer, "/pulls")
            await line.clock.sleep(wait_s)
        return None

    async def _open_draft(self, line: Line, branch: str, answer: Answer) -> Draft:
        for number, _, url in await _pulls_of(line, branch, "open"):
            return number, url
        raise Unavailable(answer.message, line.clock.now() + timedelta(seconds=1))

    async def _conflict(self, line: Line, stopped: Stopped) -> Conflicted:
        number = stopped.step.number
        ahead = [each.number for each in stopped.before if not each.contained]
        if not ahead:
            return Conflicted(number, with_base=True, culprit=None, paths=())
        facts = await self._pulls.pull_request(line, number)
        if facts.mergeability is Mergeability.NOT_MERGEABLE:
            return Conflicted(number, with_base=True, culprit=None, paths=())
        if len(ahead) > 1:
            return Conflicted(number, with_base=False, culprit=None, paths=())
        mine = await self._pulls.changed_files(line, number)
        theirs = set((await self._pulls.changed_files(line, ahead[0])).paths)
        both = [path for path in mine.paths if path in theirs]
        return Conflicted(number, False, ahead[0], tuple(both[:CONFLICT_PATHS_MAX]))

    async def _discard(self, line: Line, branch: str) -> None:
        if await refs.delete(line, branch):
            return
        # Gone before: then GitHub closed the draft as well, unless the deletion was not ours.
        for number, _, _ in await _pulls_of(line, branch, "open"):
            await _set_state(line, number, "closed")

    async def _restore(self, line: Line, branch: str, sha: Sha) -> None:
        if not await refs.create(line, branch, sha):
            found = await commits.head_of(line, branch)
            if found != sha:
                raise Refused(f"{branch} points elsewhere.", RefusedCode.NAME_TAKEN)
        if await _pulls_of(line, branch, "open"):
            return
        for number, head, _ in (await _pulls_of(line, branch, "closed"))[:1]:
            if head == sha:
                await _set_state(line, number, "open")


def _tested(request: BuildRequest, made: Sequence[Prefix]) -> list[Prefix]:
    return [prefix for prefix, step in zip(made, request.steps, strict=True) if step.tested]


async def _built(
    scratch: Scratch, branch: str, made: tuple[Prefix, ...], draft: Draft | None
) -> Built:
    return Built(
        tip=made[-1].commit,
        base_tree=(await scratch.base()).tree,
        prefixes=made,
        branch=branch,
        published=branch == scratch.request.branch,
        vehicle_number=None if draft is None else draft[0],
        vehicle_url=None if draft is None else draft[1],
    )


async def _pulls_of(line: Line, branch: str, state: str) -> list[tuple[int, Sha, str]]:
    """Pull requests with this branch of ours as head, newest first."""
    query = {"head": f"{line.repo.owner}:{branch}", "state": state}
    listed, _ = await line.listed("/pulls", None, query)
    return [answers.pull_ref_of(each) for each in listed]


async def _set_state(line: Line, number: int, state: str) -> None:
    """Close or open again; GitHub refuses to open what shows as merged, and that is fine."""
    body = {"state": state}
    tail = f"/pulls/{number}"
    await line.create("PATCH", tail, body, expects=(422,), missing=GoneKind.PULL_REQUEST)
