"""The scratch branch: heads merged one by one, commits of earlier runs used again (GITHUB.md 3).

Nothing here is seen by CI. Whatever already stands on a branch of ours is read back and gone on
from, so that a build can be repeated after any crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.github import answers, commits, limits, protection, refs
from bot.github.line import Line
from bot.github.remembered import Remembered
from bot.github.wire import Answer
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode, Unavailable
from service.provider.values import (
    BuildRequest,
    BuildStep,
    Commit,
    Prefix,
)
from service.vocabulary import Sha

CONFLICT_PAUSE_S = 2.0
DENIED_PAUSE_S = 2.0
DENIED_TRIES = 3
CONFLICT_WORDS = "merge conflict"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The step whose head conflicts with what stood before it."""

    step: BuildStep
    before: tuple[Prefix, ...]


@dataclass(slots=True)
class Patience:
    """What was waited for already, while one merge call is repeated."""

    conflicts: int = 0
    denials: int = 0
    absences: int = 0


class Scratch:
    """Merges the steps of one request onto its scratch branch."""

    def __init__(self, line: Line, remembered: Remembered, request: BuildRequest) -> None:
        self._line = line
        self._remembered = remembered
        self.request = request

    async def base(self) -> Commit:
        """The commit the test branch starts from. Raises Gone when it is unknown."""
        return await self._known(self.request.base_sha)

    async def merged(self) -> tuple[Prefix, ...] | Stopped:
        """Every step merged, by going on from what an earlier try left."""
        reused = _named(self.request.steps[:-1])
        start = await self._reused(reused)
        sha = start[-1].commit if start else self.request.base_sha
        if not await refs.create(self._line, self.request.scratch, sha):
            found = await commits.head_of(self._line, self.request.scratch)
            if found is None:
                raise self._unavailable("the scratch branch is not visible yet")
            start = await self.recognized(found)
        return await self._to_own_tip(start, reused)

    async def recognized(self, tip: Sha) -> tuple[Prefix, ...]:
        """The steps that a branch of ours already merges: a leading part of them, or all.

        Raises Refused(NAME_TAKEN) when it holds anything else.
        """
        chain = await self._chain(tip)
        before = await self.base()
        found: list[Prefix] = []
        place = 0
        for step in self.request.steps:
            if place == len(chain):
                break
            if chain[place].parents == (before.sha, step.head_sha):
                before = chain[place]
                place += 1
                found.append(Prefix(step.number, before.sha, before.tree, contained=False))
            elif await commits.contains(self._line, step.head_sha, before.sha):
                found.append(Prefix(step.number, before.sha, before.tree, contained=True))
            else:
                raise self._foreign()
        if place < len(chain):
            raise self._foreign()
        return tuple(found)

    async def completed(self, tip: Sha) -> tuple[Prefix, ...]:
        """Like `recognized`, for a branch that must hold every step already."""
        found = list(await self.recognized(tip))
        for step in self.request.steps[len(found) :]:
            if not await commits.contains(self._line, step.head_sha, tip):
                raise self._foreign()
            before = await self._known(tip)
            found.append(Prefix(step.number, before.sha, before.tree, contained=True))
        return tuple(found)

    async def _to_own_tip(
        self, start: tuple[Prefix, ...], reused: int
    ) -> tuple[Prefix, ...] | Stopped:
        """Merge what is missing; start one reused commit earlier while the tip is not ours.

        A run's tip is its own, and with it the reports on it, unless nothing is to be merged.
        """
        made = await self._rest(start)
        while isinstance(made, tuple) and reused and self._needs_own_tip(made):
            reused = _earlier(made, reused)
            start = made[:reused]
            sha = start[-1].commit if start else self.request.base_sha
            await refs.reset(self._line, self.request.scratch, sha)
            made = await self._rest(start)
        return made

    def _needs_own_tip(self, made: Sequence[Prefix]) -> bool:
        tested = [
            prefix
            for prefix, step in zip(made, self.request.steps, strict=True)
            if step.tested and not prefix.contained
        ]
        named = {step.commit for step in self.request.steps}
        return bool(tested) and made[-1].commit in named

    async def _rest(self, start: tuple[Prefix, ...]) -> tuple[Prefix, ...] | Stopped:
        made = list(start)
        before = await self._known(made[-1].commit if made else self.request.base_sha)
        for step in self.request.steps[len(made) :]:
            merged = await self._merge(step, before)
            if merged is None:
                return Stopped(step, tuple(made))
            contained = merged.sha == before.sha
            before = merged
            made.append(Prefix(step.number, before.sha, before.tree, contained))
        return tuple(made)

    async def _merge(self, step: BuildStep, before: Commit) -> Commit | None:
        """The commit after this step, None when it conflicts, asked twice (GITHUB.md 3.4)."""
        body = {
            "base": self.request.scratch,
            "head": step.head_sha,
            "commit_message": step.message,
        }
        patience = Patience()
        while patience.conflicts < 2:
            try:
                answer = await self._line.create("POST", "/merges", body, expects=(404, 409))
            except Refused as refused:
                raise Refused(refused.message, refused.code, step.number) from refused
            if answer.status == 204:
                return before
            if answer.status < 300:
                return self._own(answers.commit_of(answer.fields), step, before)
            await self._wait_over(answer, step, before, patience)
        return None

    def _own(self, commit: Commit, step: BuildStep, before: Commit) -> Commit:
        if commit.parents != (before.sha, step.head_sha):
            raise self._foreign()
        return self._remembered.keep_commit(self._line.repo, commit)

    async def _wait_over(
        self, answer: Answer, step: BuildStep, before: Commit, patience: Patience
    ) -> None:
        """What a refused merge call asks for before it is sent once more."""
        if answer.status == 404:
            await self._wait_for_head(answer, step, patience)
        elif CONFLICT_WORDS in answer.message.lower():
            patience.conflicts += 1
            if patience.conflicts == 1:
                await self._line.clock.sleep(CONFLICT_PAUSE_S)
                await self._read_both(step, before)
        elif patience.denials == DENIED_TRIES:
            if await protection.forbids_building(self._line, self.request.scratch):
                raise Refused(answer.message, RefusedCode.RULE_DENIED)
            raise self._unavailable(answer.message or "GitHub answered 409")
        else:
            # A passing permission fault looks like this and must not blame anybody.
            patience.denials += 1
            await self._line.clock.sleep(DENIED_PAUSE_S)

    async def _read_both(self, step: BuildStep, before: Commit) -> None:
        """Base and head as they are now: a conflict between others would prove nothing."""
        base = await commits.head_of(self._line, self.request.scratch)
        if base != before.sha:
            raise self._foreign()
        if await commits.commit(self._line, self._remembered, step.head_sha) is None:
            raise Gone(f"The head of {step.number} is gone.", GoneKind.PULL_REQUEST)

    async def _wait_for_head(self, answer: Answer, step: BuildStep, patience: Patience) -> None:
        """A head just pushed, or our own scratch branch, may not be visible yet."""
        if patience.absences == len(limits.YOUNG_WAITS_S):
            await self._line.get("")  # says whether the whole repository is gone
            if "base" in answer.message.lower():
                raise self._unavailable("the scratch branch is gone")
            raise Gone(f"The head of {step.number} is gone.", GoneKind.PULL_REQUEST)
        await self._line.clock.sleep(limits.YOUNG_WAITS_S[patience.absences])
        patience.absences += 1

    async def _reused(self, count: int) -> tuple[Prefix, ...]:
        """Prefixes of the leading steps whose commits earlier runs made."""
        found: list[Prefix] = []
        before = self.request.base_sha
        for step in self.request.steps[:count]:
            commit = await self._known(step.commit or before)
            found.append(
                Prefix(step.number, commit.sha, commit.tree, contained=commit.sha == before)
            )
            before = commit.sha
        return tuple(found)

    async def _chain(self, tip: Sha) -> list[Commit]:
        """First parents from the base, oldest first; longer ones are not ours."""
        found: list[Commit] = []
        at = tip
        while at != self.request.base_sha:
            commit = await self._known(at)
            if len(commit.parents) != 2 or len(found) == len(self.request.steps):
                raise self._foreign()
            found.append(commit)
            at = commit.parents[0]
        return found[::-1]

    async def _known(self, sha: Sha) -> Commit:
        commit = await commits.commit(self._line, self._remembered, sha)
        if commit is None:
            raise Gone(f"Commit {sha} is gone.", GoneKind.BRANCH)
        return commit

    def _foreign(self) -> Refused:
        return Refused(
            f"{self.request.branch} or its scratch branch holds something else.",
            RefusedCode.NAME_TAKEN,
        )

    def _unavailable(self, words: str) -> Unavailable:
        later = self._line.clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
        return Unavailable(f"The test branch cannot be made now: {words}.", later)


def _named(steps: Sequence[BuildStep]) -> int:
    """How many leading steps name a commit."""
    return next((place for place, step in enumerate(steps) if step.commit is None), len(steps))


def _earlier(made: Sequence[Prefix], reused: int) -> int:
    """How many steps to keep so that one commit more is merged anew."""
    while reused and made[reused - 1].contained:
        reused -= 1
    return max(reused - 1, 0)
