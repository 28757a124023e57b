"""Pushes to one repository: several branches at once, and not more often than every 10 seconds.

The holder of the lock pushes the branches of all who wait. The reason for a refused push stands in
what GitHub and git wrote: https://github.com/ejoffe/spr/issues/422 has the whole output of one, and
tests/github/refusals.toml the other sentences with their sources (docs/design/git-builds.md 5).
"""

import asyncio
import re
from dataclasses import dataclass

import structlog
from cachetools import LRUCache

from bot.github import limits, refs
from bot.github.client import RepositoryClient
from bot.github.gitbuild.command import NETWORK_S, WORDS_MAX, Command, GitFailed, Output
from bot.github.gitbuild.mirror import Mirror, Reason, Unusable
from service.vocabulary import Sha

_REMOTE = "remote: "
_OF_REF = re.compile(r"error: GH\d{3}: .* for (?P<ref>refs/\S+?)\.?$")
_SENTENCE = re.compile(r"- (?P<words>.+)")
_REFS_MAX = re.compile(r"pushes can ?not update more than (?P<most>\d+) ", re.IGNORECASE)

# Parts of the words (lower case, without backticks), the first that fits.
_REASONS = (
    ("rule violations", Reason.PUSH_RULE),
    ("protected branch", Reason.PUSH_RULE),
    ("hook declined", Reason.PUSH_HOOK),
    ("denied to", Reason.PUSH_DENIED),
    ("error: 403", Reason.PUSH_DENIED),
    ("(failed)", Reason.PUSH_BUSY),
    ("(failure)", Reason.PUSH_BUSY),
)
# Neither says that git cannot build the next test branch.
_PASSING = frozenset({Reason.PUSH_BUSY, Reason.PUSH_WORKFLOWS})


def unusable(words: str) -> Unusable:
    """Return the error that the words of a refused branch mean."""
    said = words.lower().replace("`", "")
    if limits.is_about_workflows(said):
        reason = Reason.PUSH_WORKFLOWS
    else:
        reason = next((reason for part, reason in _REASONS if part in said), Reason.PUSH)
    return Unusable(reason, words, is_failure=reason not in _PASSING)


def refs_max_of(errors: str) -> int | None:
    """Return how many refs GitHub lets one push change, if that is why it refused a push."""
    found = _REFS_MAX.search(errors)
    return None if found is None else int(found["most"])


def sentences_of(errors: str, ref: str) -> str:
    """Return what GitHub said of one ref on git's standard error; of no ref, if it named none."""
    said: dict[str, list[str]] = {}
    about = ""
    for line in errors.splitlines():
        words = line.removeprefix(_REMOTE).strip()
        if of_ref := _OF_REF.match(words):
            about = of_ref["ref"]
        elif line.startswith(_REMOTE) and (sentence := _SENTENCE.match(words)):
            said.setdefault(about, []).append(sentence["words"])
    return " ".join(said.get(ref, said.get("", [])))[:WORDS_MAX]


SPACING_S = 10.0  # GitHub recommends at most 6 pushes a minute to a repository
REFS_MAX = 5
LEARNED_S = 24 * 3600.0  # then more are tried again: an admin may have raised the limit
BRANCHES_MAX = 5_000
OUR_BRANCH = re.compile(r"headgate/[a-z0-9/-]+")
DONE = ("*", "=", "-")
SENT_AGAIN = frozenset({Reason.PUSH, Reason.PUSH_BUSY})
"""GitHub refused no branch by a rule: it was busy, or there was no answer."""
PUSH = (
    "push",
    "--porcelain",
    "--no-verify",
    "--no-signed",
    "--recurse-submodules=no",
)


@dataclass(frozen=True, slots=True, eq=False)
class Creation:
    """A branch that must not exist yet, unless at this commit."""

    branch: str
    sha: Sha
    client: RepositoryClient

    @property
    def arguments(self) -> tuple[str, str]:
        """The lease, and what is pushed."""
        ref = f"{refs.HEADS}{self.branch}"
        return f"--force-with-lease={ref}:", f"{self.sha}:{ref}"


@dataclass(frozen=True, slots=True, eq=False)
class Deletion:
    """A branch to delete while it is still at this commit."""

    branch: str
    sha: Sha
    client: RepositoryClient

    @property
    def arguments(self) -> tuple[str, str]:
        """The lease, and what is pushed."""
        ref = f"{refs.HEADS}{self.branch}"
        return f"--force-with-lease={ref}:{self.sha}", f":{ref}"


Change = Creation | Deletion

log = structlog.get_logger()


class Pushes:
    """The pushes of one repository."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._turn = asyncio.Lock()
        self._waiting: list[Change] = []
        self._results: dict[Change, str] = {}
        self._refs_max = REFS_MAX
        self._learned_s: float | None = None
        self._ended_s: float | None = None
        self._tips: LRUCache[str, Sha] = LRUCache(BRANCHES_MAX)
        self.sent = 0

    async def create(self, creation: Creation) -> None:
        """Create a branch; one that is there already is done. Raises Unusable."""
        if not OUR_BRANCH.fullmatch(creation.branch):
            raise Unusable(Reason.PUSH, "not a branch of ours")
        for is_last in (False, True):
            words = await self._carry(creation)
            if not words:
                break
            # Refused, or the answer was lost: only the branch itself knows.
            head = await refs.read_head(creation.client, creation.branch, is_awaited=True)
            if head == creation.sha:
                break
            refused = unusable(words)
            if is_last or head is not None or refused.reason not in SENT_AGAIN:
                raise refused
        self._tips[creation.branch] = creation.sha

    async def delete(self, client: RepositoryClient, branch: str) -> bool:
        """Delete a branch of ours with a push that waits; False where that cannot be done.

        Deletions that no push waits for are left to the REST API: they would delay a creation.
        """
        sha = self._tips.get(branch)
        if sha is None or not any(isinstance(each, Creation) for each in self._waiting):
            return False
        is_done = not await self._carry(Deletion(branch, sha, client))
        if is_done:
            self._tips.pop(branch, None)
        return is_done

    async def _carry(self, change: Change) -> str:
        """Wait until a push has carried the change; why it was refused, empty if it was not."""
        self._waiting.append(change)
        try:
            async with self._turn:
                while change not in self._results:
                    await self._wait_for_turn()
                    await self._push(self._plan())
        finally:
            if change in self._waiting:
                self._waiting.remove(change)
        return self._results.pop(change)

    async def _wait_for_turn(self) -> None:
        if self._ended_s is None:
            return
        left_s = self._ended_s + SPACING_S - self._mirror.clock.monotonic_s()
        if left_s > 0:
            await self._mirror.clock.sleep(left_s)

    def _plan(self) -> list[Change]:
        """Return what goes now: creations first, each branch once."""
        now_s = self._mirror.clock.monotonic_s()
        if self._learned_s is not None and now_s - self._learned_s >= LEARNED_S:
            self._refs_max, self._learned_s = REFS_MAX, None
        ordered = sorted(self._waiting, key=lambda each: isinstance(each, Deletion))
        planned: dict[str, Change] = {}
        for change in ordered:
            planned.setdefault(change.branch, change)
        return list(planned.values())[: self._refs_max]

    async def _push(self, plan: list[Change]) -> None:
        """Send one push; a refused branch refuses no other.

        What GitHub refuses as too many refs goes on waiting, for pushes of fewer.
        """
        leases, changes = zip(*(each.arguments for each in plan), strict=True)
        command = Command((*PUSH, *leases, "origin", *changes), expects=(1,), within_s=NETWORK_S)
        self.sent += 1
        client = plan[0].client
        if pacer := client.github.pacer_of(client.repo):
            pacer.counts.add_push(client.repo.slug)
        try:
            output = await self._mirror.run(command, client)
        except GitFailed as failed:
            results = {f"{refs.HEADS}{each.branch}": failed.words for each in plan}
        else:
            if self._learns_limit(output, len(plan)):
                return
            results = results_of(output)
        finally:
            self._ended_s = self._mirror.clock.monotonic_s()
        for change in plan:
            if change not in self._waiting:
                continue  # nobody waits for it any more
            self._waiting.remove(change)
            self._results[change] = results.get(f"{refs.HEADS}{change.branch}", "no answer")

    def _learns_limit(self, output: Output, refs_sent: int) -> bool:
        """Return whether an admin's push policy refused the push and fewer refs are worth a try."""
        most = refs_max_of(output.errors)
        if most is None or refs_sent == 1:
            return False
        # GitHub refused this number of refs, so the next push must have fewer.
        self._refs_max = max(1, min(most, refs_sent - 1))
        self._learned_s = self._mirror.clock.monotonic_s()
        log.info("push_limit_learned", repo=self._mirror.folder.name, refs_max=self._refs_max)
        return True


def results_of(output: Output) -> dict[str, str]:
    """Return why each ref of `push --porcelain` was refused, empty if it was not."""
    results = {}
    for line in output.text.decode(errors="replace").splitlines():
        flag, _, rest = line.partition("\t")
        change, _, words = rest.partition("\t")
        ref = change.rpartition(":")[2]
        if flag in DONE:
            results[ref] = ""
        elif flag == "!":
            sentences = sentences_of(output.errors, ref)
            results[ref] = f"{words} {sentences}".strip()[:WORDS_MAX]
    return results
