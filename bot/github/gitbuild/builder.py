"""The choice between git and the REST API for each test branch (docs/design/git-builds.md 1).

If git fails, the REST API makes the branch and continues with what git has pushed.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from bot.github import protection, refs, testbranches
from bot.github.client import RepositoryClient
from bot.github.gitbuild import mirror as mirrors
from bot.github.gitbuild.chain import Conflicting, GitBuild, Place
from bot.github.gitbuild.command import VERSION_MIN, GitFailed
from bot.github.gitbuild.judging import Judge, not_judged
from bot.github.gitbuild.mirror import Mirror, Mirrors, Reason, Unusable
from bot.github.gitbuild.overlapping import Overlapping, Remembered
from bot.github.gitbuild.push import Pushes
from bot.github.options import BuildMethod, MirrorOptions
from bot.github.own_branches import Prefixes
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from bot.github.reading import Unreadable
from service.clock import Clock
from service.landed_work import WorkJudged
from service.provider.errors import ProviderError, Refused, RefusedCode, Unavailable
from service.provider.overlaps import OverlapRequest, Overlaps
from service.provider.values import BuildRequest, BuildResult, Built, Conflicted, Rehearsed
from service.telemetry import SILENT, Meter
from service.vocabulary import Sha

FULL_KIB_MAX = 2 << 20
BLOBLESS_KIB_MAX = 10 << 20
FACTS_KEPT_S = 300.0
CREATED_AT_ONCE = 2
PREPARED_AT_ONCE = 4
# No test branch has this name; a rule for headgate/** covers it like all of them.
ANY_TEST_BRANCH = "headgate/merge/any"
ONLY_GIT = (
    "Only git can build this test branch, because its commits are to land as they are: the REST"
    " API replays no commits and squashes no member of a chain onto the one below."
)
RULES_NEED_GIT = (
    "This test branch has a conflict, which only git can resolve by the rules of the queue."
)
NEVER_HERE = frozenset({Reason.SETTING, Reason.NO_GIT, Reason.SIGNATURES, Reason.TOO_BIG})
"""Reasons against git that only an operator, or another repository, can change."""
GIT_AGAIN = timedelta(seconds=30)
JUDGED_WITHIN_S = 5.0
"""A submission waits at most this long to learn what it would take back."""
JUDGED_AFTER_BUILD_S = 60.0
"""CI of a test branch takes longer, and it runs meanwhile."""
FAILURES_MAX = 2
FAILURES_WITHIN_S = 3600.0
DISAGREEMENTS_MAX = 3
DISAGREEMENTS_WITHIN_S = 86_400.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a repository that the choice needs, as read at `read_s`."""

    id: str
    size_kib: int
    signs: bool
    read_s: float


@dataclass(frozen=True, slots=True)
class Failure:
    """Why git could not build, in words of git and GitHub."""

    reason: Reason
    words: str
    at_s: float


@dataclass(frozen=True, slots=True)
class BuilderState:
    """The state that decides whether git builds the test branches of a repository.

    `needed`: about the bytes of its mirror, 0 if that is there. `used`: those of all mirrors.
    `failure`: the last one within an hour; `is_resting`: there were too many. `is_being_made`: its
    mirror.
    """

    method: BuildMethod
    version: tuple[int, int]
    size_kib: int
    needed: int
    used: int
    bytes_max: int
    free: int
    has_room: bool
    failure: Failure | None = None
    is_resting: bool = False
    disagreed: bool = False
    is_being_made: bool = False


@dataclass(slots=True)
class Incidents:
    """Recent incidents; with too many of them git is not used for as long as they count."""

    most: int
    within_s: float
    times_s: deque[float] = field(default_factory=deque)

    def add(self, now_s: float) -> None:
        """Count one."""
        self.times_s.append(now_s)

    def are_too_many(self, now_s: float) -> bool:
        """Return whether there were too many lately."""
        while self.times_s and now_s - self.times_s[0] > self.within_s:
            self.times_s.popleft()
        return len(self.times_s) >= self.most


@dataclass(slots=True)
class Seat:
    """The state of one repository: its facts, what went wrong, its mirror, its pushes."""

    facts: Facts | None = None
    failure: Failure | None = None
    failures: Incidents = field(default_factory=lambda: Incidents(FAILURES_MAX, FAILURES_WITHIN_S))
    disagreements: Incidents = field(
        default_factory=lambda: Incidents(DISAGREEMENTS_MAX, DISAGREEMENTS_WITHIN_S)
    )
    place: Place | None = None
    preparing: asyncio.Task[None] | None = None
    creating: asyncio.Task[None] | None = None
    tended_s: float | None = None
    remembered: Remembered = field(default_factory=Remembered)
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)

    def fail(self, reason: Reason, words: str, now_s: float) -> None:
        """Count a failure of git."""
        self.failures.add(now_s)
        self.failure = Failure(reason, words, now_s)

    def has_failed_since(self, began_s: float) -> bool:
        """Return whether a failure has been counted after this moment."""
        return self.failure is not None and self.failure.at_s > began_s

    def is_mirror_being_made(self) -> bool:
        """Return whether its mirror is prepared or made now."""
        tasks = (self.preparing, self.creating)
        return any(task is not None and not task.done() for task in tasks)

    def failure_lately(self, now_s: float) -> Failure | None:
        """Return the last failure while it counts."""
        failure = self.failure
        is_recent = failure is not None and now_s - failure.at_s <= FAILURES_WITHIN_S
        return failure if is_recent else None


class GitBuilder:
    """Builds test branches of one host, by git where it can."""

    def __init__(
        self,
        options: MirrorOptions,
        mirrors_of_host: Mirrors,
        readers: tuple[PullRequests, Protection],
        clock: Clock,
        telemetry: Meter = SILENT,
    ) -> None:
        self._method = options.method
        self._mirrors = mirrors_of_host
        self._pulls, self._protection = readers
        self._clock = clock
        self._telemetry = telemetry
        self._seats: dict[str, Seat] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_git: bool | None = None
        self._creations = asyncio.Semaphore(CREATED_AT_ONCE)
        self._preparations = asyncio.Semaphore(PREPARED_AT_ONCE)

    def prepare(self, client: RepositoryClient, target: str) -> None:
        """Begin to make the mirror that builds for a target branch use, unless it is there.

        GitHub is asked in the background. No other mirror is deleted for it. `state` shows that
        it is being made, and what fails.
        """
        seat = self._seat(client)
        is_begun = seat.preparing is not None and not seat.preparing.done()
        if self._method is not BuildMethod.REST and not is_begun:
            seat.preparing = self._in_background(self._prepared(client, target, seat))

    async def _prepared(self, client: RepositoryClient, target: str, seat: Seat) -> None:
        try:
            async with self._preparations:
                await self._begin_unless_there(client, target, seat)
        except Unusable as why:
            # The mirror is not ready ahead of the first build, which is slower.
            log.info("mirror_not_prepared", repo=client.repo.slug, reason=why.reason.value)
        except (ProviderError, Unreadable) as trouble:
            log.info("mirror_not_prepared", repo=client.repo.slug, reason=str(trouble))
        except OSError as failure:
            seat.fail(Reason.DISK, str(failure), self._clock.monotonic_s())

    async def _begin_unless_there(self, client: RepositoryClient, target: str, seat: Seat) -> None:
        facts = await self._usable(client, target, seat)
        if self._chosen_place(seat, facts).mirror.is_there():
            return
        needed = _needed(facts.size_kib)
        room = await self._mirrors.room(needed)
        if not room.is_enough or room.used + needed > room.bytes_max:
            raise Unusable(Reason.DISK, is_failure=False)
        tip = await refs.read_tip(client, target)
        if tip is not None:
            self._begin(client, {mirrors.base_ref(target): tip.sha}, seat)

    async def build(self, client: RepositoryClient, request: BuildRequest) -> BuildResult:
        """Make, or find and complete, the test branch; see `testbranches.build`."""
        seat, began_s = self._seat(client), self._clock.monotonic_s()
        try:
            place = await self._place(client, request, seat)
            result = await testbranches.carry_out(GitBuild(client, self._pulls, request, place))
        except Conflicting as conflict:
            return await self._second_opinion(client, request, seat, conflict)
        except (Unusable, OSError) as failure:
            why = failure if isinstance(failure, Unusable) else Unusable(Reason.DISK, str(failure))
            # Builds at once share a push, and a disk.
            if why.is_failure and not seat.has_failed_since(began_s):
                seat.fail(why.reason, why.words, self._clock.monotonic_s())
                self._make_anew_if_resting(seat)
            return await self._by_rest(client, request, why)
        self._report(request, BuildMethod.GIT, Reason.DEFAULT)
        self._tend(seat, place)
        if isinstance(result, Built) and request.guard is not None:
            # CI has begun, so the time that this takes delays nothing that waits for it.
            judge = Judge(place.mirror, request, request.guard)
            judged = await self._judged(judge, seat, JUDGED_AFTER_BUILD_S, result.prefixes)
            result = replace(result, judged=judged)
        return result

    async def rehearse(self, client: RepositoryClient, request: BuildRequest) -> Rehearsed | None:
        """Return whether git finds a conflict in its mirror; None: git cannot tell now."""
        seat = self._seat(client)
        try:
            facts = await self._usable(client, request.target, seat)
            place = self._chosen_place(seat, facts)
            if place.mirror.is_there():
                await GitBuild(client, self._pulls, request, place).rehearse()
                return Rehearsed(None)
        except Conflicting as conflict:
            return Rehearsed(conflict.verdict)
        except (Unusable, OSError, ProviderError) as trouble:
            log.info("not_rehearsed", repo=client.repo.slug, run=request.run_id, why=str(trouble))
        return None

    async def overlaps(self, client: RepositoryClient, request: OverlapRequest) -> Overlaps | None:
        """Return what git finds of pairs of heads; None where it cannot look now.

        A mirror without contents would fetch them for each merge.
        """
        seat = self._seat(client)
        try:
            facts = await self._usable(client, request.target, seat)
            mirror = self._chosen_place(seat, facts).mirror
            if not mirror.is_there() or mirror.is_blobless:
                return None
            return await Overlapping(mirror, client, request, seat.remembered).compare()
        except (Unusable, GitFailed, OSError, ProviderError) as trouble:
            # The next look tries again.
            log.info("overlaps_unknown", repo=client.repo.slug, why=str(trouble))
            return None

    async def judge(
        self, client: RepositoryClient, request: BuildRequest
    ) -> Mapping[int, WorkJudged]:
        """Return how the tested heads stand to landed work, or why that is not known."""
        seat = self._seat(client)
        if request.guard is None:
            return {}
        # Without landings nothing can be undone.
        later = request.guard.after != request.base_sha
        try:
            async with asyncio.timeout(JUDGED_WITHIN_S):
                facts = await self._usable(client, request.target, seat)
                place = self._chosen_place(seat, facts)
                if not place.mirror.is_there():
                    raise Unusable(Reason.NOT_READY, is_failure=False)
                made = await GitBuild(client, self._pulls, request, place).rehearse()
                judge = Judge(place.mirror, request, request.guard)
                found = await self._judged(judge, seat, JUDGED_WITHIN_S, made)
                return {
                    pr: replace(one, later=later and bool(one.trouble)) for pr, one in found.items()
                }
        except Conflicting:
            return {}
        except TimeoutError:
            why = f"it took longer than {JUDGED_WITHIN_S:g} s"
        except (Unusable, OSError, ProviderError) as trouble:
            why = _why(trouble)
            later = later and getattr(trouble, "reason", None) not in NEVER_HERE
        log.info("not_judged", repo=client.repo.slug, run=request.run_id, why=why)
        return not_judged(request, why, later=later)

    async def _judged(
        self, judge: Judge, seat: Seat, within_s: float, made: Prefixes
    ) -> Mapping[int, WorkJudged]:
        """Judge one build at a time, so that other builds wait for one of them at most."""
        try:
            async with asyncio.timeout(within_s), seat.judging, judge.mirror.held():
                return await judge.of(made)
        except TimeoutError:
            why = f"it took longer than {within_s:g} s"
        except (GitFailed, Unusable, OSError, ValueError) as trouble:
            # Output of git that cannot be read stops no build and no submission.
            why = _why(trouble)
        # The head lands without this judgement; `explain` says so.
        log.warning("not_judged", repo=judge.request.repo.slug, run=judge.request.run_id, why=why)
        return not_judged(judge.request, why)

    async def repeats_commits(self, client: RepositoryClient, target: str) -> bool:
        """Return whether git builds there now, as far as is known before it tries."""
        seat = self._seat(client)
        try:
            facts = await self._usable(client, target, seat)
        except Unusable:
            return False
        return self._chosen_place(seat, facts).mirror.is_there()

    async def discard(self, client: RepositoryClient, branch: str) -> None:
        """Delete a branch with a waiting push, else by the REST API."""
        seat = self._seats.get(client.repo.slug.lower())
        if seat is None or seat.place is None or not await seat.place.pushes.delete(client, branch):
            await testbranches.discard(client, branch)

    async def state(self, client: RepositoryClient) -> BuilderState:
        """Return what decides whether git builds; reads the size of the repository."""
        seat = self._seats.get(client.repo.slug.lower(), Seat())
        repository = (await client.get("", is_kept=True)).fields
        size_kib, now_s = repository.number("size"), self._clock.monotonic_s()
        is_blobless = size_kib > FULL_KIB_MAX
        mirror = self._mirrors.of(repository.id("id"), is_blobless=is_blobless)
        needed = 0 if mirror.is_there() else _needed(size_kib)
        room = await self._mirrors.room(needed)
        return BuilderState(
            method=self._method,
            version=await self._mirrors.git.version(),
            size_kib=size_kib,
            needed=needed,
            used=room.used,
            bytes_max=room.bytes_max,
            free=room.free,
            has_room=room.is_enough,
            failure=seat.failure_lately(now_s),
            is_resting=seat.failures.are_too_many(now_s),
            disagreed=seat.disagreements.are_too_many(now_s),
            is_being_made=seat.is_mirror_being_made(),
        )

    async def close(self) -> None:
        """End what runs in the background."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _by_rest(
        self, client: RepositoryClient, request: BuildRequest, failure: Unusable
    ) -> BuildResult:
        if not testbranches.can_build(request):
            raise self._only_git(failure)
        self._report(request, BuildMethod.REST, failure.reason, failure.words)
        result = await testbranches.build(client, self._pulls, request)
        is_resolvable = request.rules and failure.reason not in NEVER_HERE
        if is_resolvable and isinstance(result, Conflicted):
            raise Unavailable(f"{RULES_NEED_GIT} It cannot now: {failure}.", self._git_again())
        return result

    def _only_git(self, failure: Unusable) -> ProviderError:
        """Return the error of a build that waits for git, or that git will never make here."""
        words = f"{ONLY_GIT} It cannot now: {failure}."
        if failure.reason in NEVER_HERE:
            return Refused(words, RefusedCode.GIT_NEEDED)
        return Unavailable(words, self._git_again())

    def _git_again(self) -> datetime:
        return self._clock.now() + GIT_AGAIN

    async def _second_opinion(
        self, client: RepositoryClient, request: BuildRequest, seat: Seat, conflict: Conflicting
    ) -> BuildResult:
        """Let GitHub confirm a conflict; its answer counts, and git knows the paths.

        One of a head ahead is confirmed by the run that tests it. One that no call of GitHub
        shows is as git says.
        """
        if not conflict.step.tested:
            # GitHub confirms the conflict that git found.
            log.info("conflict_ahead", run=request.run_id, number=conflict.step.number)
            return Conflicted(conflict.step.number, False, None, conflict.verdict.paths)
        if conflict.is_final or request.rules or not testbranches.can_build(request):
            # Git found a conflict that GitHub does not have.
            log.info("conflict_unconfirmed", run=request.run_id, number=conflict.step.number)
            return conflict.verdict
        self._report(request, BuildMethod.REST, Reason.CONFLICT)
        result = await testbranches.build(client, self._pulls, request)
        if not isinstance(result, Conflicted):
            seat.disagreements.add(self._clock.monotonic_s())
            self._telemetry.count("headgate_build_disagreements_total")
            # Git finds conflicts that GitHub does not have: GitHub's REST API builds for a day.
            log.warning("build_disagreement", repo=request.repo.slug, run=request.run_id)
        elif result.number == conflict.step.number:
            result = replace(result, paths=conflict.verdict.paths)
        return result

    def _seat(self, client: RepositoryClient) -> Seat:
        return self._seats.setdefault(client.repo.slug.lower(), Seat())

    async def _place(self, client: RepositoryClient, request: BuildRequest, seat: Seat) -> Place:
        """Return the mirror to build in. Raises Unusable with the reason against git."""
        facts = await self._usable(client, request.target, seat)
        place = self._chosen_place(seat, facts)
        if not place.mirror.is_there():
            await self._create(client, request, seat, facts)
        return place

    async def _usable(self, client: RepositoryClient, target: str, seat: Seat) -> Facts:
        """Return the facts of a repository in which git can build. Raises Unusable."""
        now_s = self._clock.monotonic_s()
        if self._method is BuildMethod.REST:
            raise Unusable(Reason.SETTING, is_failure=False)
        if not await self._finds_git():
            raise Unusable(Reason.NO_GIT, is_failure=False)
        if seat.disagreements.are_too_many(now_s):
            raise Unusable(Reason.DISAGREED, is_failure=False)
        if seat.failures.are_too_many(now_s):
            raise Unusable(Reason.COOLING, is_failure=False)
        facts = await self._facts(client, target, seat)
        if facts.signs:
            raise Unusable(Reason.SIGNATURES, is_failure=False)
        if facts.size_kib > BLOBLESS_KIB_MAX and self._method is BuildMethod.AUTO:
            raise Unusable(Reason.TOO_BIG, is_failure=False)
        return facts

    def _chosen_place(self, seat: Seat, facts: Facts) -> Place:
        mirror = self._mirrors.of(facts.id, is_blobless=facts.size_kib > FULL_KIB_MAX)
        if seat.place is None or seat.place.mirror is not mirror:
            seat.place = Place(mirror, Pushes(mirror))
        return seat.place

    async def _finds_git(self) -> bool:
        if self._has_git is None:
            version = await self._mirrors.git.version()
            self._has_git = version >= VERSION_MIN
            # Which git this machine has, and whether it can build test branches.
            log.info("git_found", version=".".join(map(str, version)), usable=self._has_git)
        return self._has_git

    async def _facts(self, client: RepositoryClient, target: str, seat: Seat) -> Facts:
        """Return the facts of at most 5 minutes ago. Raises Unusable when they are unreadable."""
        now_s = self._clock.monotonic_s()
        facts = seat.facts
        try:
            if facts is None or now_s - facts.read_s > FACTS_KEPT_S:
                answer = (await client.get("", is_kept=True)).fields
                signs = await protection.requires_signatures(client, ANY_TEST_BRANCH)
                facts = Facts(answer.id("id"), answer.number("size"), signs, now_s)
                seat.facts = facts
            rules = await self._protection.rules(client, target)
        except Unavailable:
            raise
        except ProviderError as failure:
            raise Unusable(Reason.UNREADABLE, failure.message, is_failure=False) from failure
        return replace(facts, signs=facts.signs or rules.needs_signatures)

    async def _create(
        self, client: RepositoryClient, request: BuildRequest, seat: Seat, facts: Facts
    ) -> None:
        """Begin to make the mirror; with the method `git`, wait for it. Raises Unusable."""
        if seat.creating is None or seat.creating.done():
            await self._mirrors.make_room(_needed(facts.size_kib))
        base = {mirrors.base_ref(request.target): request.base_sha}
        creating = self._begin(client, base, seat)
        if self._method is BuildMethod.GIT:
            await asyncio.wait({creating})
        if seat.place is None or not seat.place.mirror.is_there():
            raise Unusable(Reason.NOT_READY, is_failure=False)

    def _begin(
        self, client: RepositoryClient, base: Mapping[str, Sha], seat: Seat
    ) -> asyncio.Task[None]:
        """Return the task that makes the mirror; start it unless it runs."""
        if seat.creating is None or seat.creating.done():
            seat.creating = self._in_background(self._made(client, base, seat))
        return seat.creating

    async def _made(self, client: RepositoryClient, base: Mapping[str, Sha], seat: Seat) -> None:
        if seat.place is None:
            return
        started_s = self._clock.monotonic_s()
        try:
            async with self._creations:
                await seat.place.mirror.create(client, base)
        except (GitFailed, Unusable, ProviderError, OSError) as failure:
            seat.fail(Reason.NOT_MADE, str(failure), self._clock.monotonic_s())
            # The mirror could not be made; GitHub's REST API builds the test branches.
            log.warning("mirror_failed", repo=client.repo.slug, why=str(failure))
        else:
            took_s = round(self._clock.monotonic_s() - started_s, 1)
            # The mirror of the repository is there; git builds the test branches.
            log.info("mirror_made", repo=client.repo.slug, seconds=took_s)

    def _tend(self, seat: Seat, place: Place) -> None:
        """Look after the mirror once an hour, apart from any build."""
        now_s = self._clock.monotonic_s()
        if seat.tended_s is None:
            seat.tended_s = now_s
        elif now_s - seat.tended_s > mirrors.UPKEEP_EVERY_S:
            seat.tended_s = now_s
            self._in_background(self._tended(place.mirror))

    async def _tended(self, mirror: Mirror) -> None:
        try:
            async with mirror.held():
                await mirror.tend()
            with suppress(Unusable):
                await self._mirrors.make_room(0)
        except (GitFailed, Unusable, OSError, ValueError) as failure:
            # Tried again in an hour; builds go on.
            log.warning("mirror_upkeep_failed", mirror=mirror.folder.name, why=str(failure))

    def _make_anew_if_resting(self, seat: Seat) -> None:
        """Delete the mirror while git rests: its damage can be one that no word of git tells."""
        if seat.place is not None and seat.failures.are_too_many(self._clock.monotonic_s()):
            self._in_background(self._deleted(seat.place.mirror))

    async def _deleted(self, mirror: Mirror) -> None:
        with suppress(Unusable, OSError):
            async with mirror.held():
                await mirror.delete()

    def _in_background(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _report(
        self, request: BuildRequest, method: BuildMethod, reason: Reason, words: str = ""
    ) -> None:
        """Say how a branch is built, and why."""
        self._telemetry.count("headgate_test_branches_built_total", method.value, reason.value)
        log.info(
            "test_branch_method",
            repo=request.repo.slug,
            run=request.run_id,
            method=method.value,
            reason=reason.value,
            words=words,
        )


def _why(trouble: Exception) -> str:
    """Return in words why git could not be asked."""
    if isinstance(trouble, Unusable) and not trouble.words:
        return f"git cannot be used here now ({trouble.reason.value.replace('_', ' ')})"
    return str(trouble)


def _needed(size_kib: int) -> int:
    """Return about how many bytes the mirror of a repository of this size needs."""
    # Without file contents less than half is left (docs/design/git-builds.md 7).
    return (size_kib << 10) // (2 if size_kib > FULL_KIB_MAX else 1)
