"""One history of a pull request, most often of a fork: who may submit it and let it in.

A person lets in one head on one base, with its sensitive files. Jobs send impacted targets.

The rules and the store are the real ones, over SQLite in memory. The provider, its clock of whole
seconds and its post, which loses order and repeats, are a few lines here.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, StaticPool, create_engine

from service.accounts.store import access
from service.database.database import Store
from service.database.tables_base import METADATA
from service.errors import Invalid, NotAllowed
from service.http.callers import Caller
from service.memory import Memory
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import HeadToMerge
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import (
    comment_commands,
    comments,
    consents,
    facts,
    impacted_targets,
)
from service.mergequeue.operations.comment_commands import CommentCommand, Place
from service.mergequeue.store import answered_commands
from service.mergequeue.store import consents as stored
from service.mergequeue.store.consents import ShownHead
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provenance import ProviderTime
from service.provider.ci import CiRun, CiTrigger, ProvedJob
from service.provider.signals import AskCancel, Asked, AskSource, AskSubmit, Where
from service.provider.values import AccessLevel, ChangedFiles, ForcePush, PullRequest
from service.runtime import Runtime
from service.vocabulary import (
    Actor,
    ActorKind,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    QueueRef,
    Role,
    Sha,
)
from tests.hostile.world import Violation
from tests.store.builders import an_entry
from tests.store.conftest import a_repository

T = TypeVar("T")

START = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
NUMBER = 3
TURNS = 24
BASES = ("main", "release")
HEADS = tuple(Sha(f"{each:040x}") for each in range(1, 2 * TURNS))
WORKFLOW = ".github/workflows/ci.yml"
PATIENT_SHARE = 0.5
"""How many histories have people who wait a while before they write."""

PEOPLE = {
    login: Actor(kind, login, str(number))
    for number, (login, kind) in enumerate(
        {
            "mia": ActorKind.PERSON,
            "will": ActorKind.PERSON,
            "rita": ActorKind.PERSON,
            "dave": ActorKind.PERSON,
            "helper[bot]": ActorKind.BOT,
        }.items(),
        start=11,
    )
}
RIGHTS = {
    "mia": AccessLevel.MAINTAIN,
    "will": AccessLevel.WRITE,
    "rita": AccessLevel.TRIAGE,
    "dave": AccessLevel.READ,
    "helper[bot]": AccessLevel.WRITE,
}
"""What each may do at first; dave is the author of the fork's pull request."""


@dataclass
class Said:
    """A command, and what its author saw when it was made."""

    asked: Asked
    head: Sha
    base: str
    is_given: bool = False
    is_over: bool = False

    @property
    def lets_in(self) -> bool:
        """Whether it may be a consent at all."""
        by_hand = self.asked.source in (AskSource.COMMENT, AskSource.REVIEW)
        is_submission = isinstance(self.asked.ask, AskSubmit)
        return by_hand and is_submission and self.asked.actor.kind is ActorKind.PERSON

    def is_for(self, head: Sha, base: str) -> bool:
        """Whether the person could see this head on this base, or named it in full."""
        named = self.asked.ask.sha if isinstance(self.asked.ask, AskSubmit) else None
        return (named or self.head) == head and self.base == base


@dataclass(frozen=True)
class Github:
    """The provider as the rules ask it."""

    world: "Forks"

    async def access(self, _repo: object, actor: Actor) -> AccessLevel:
        """The right that a person has now."""
        return self.world.rights[actor.login]

    async def changed_files(self, _repo: object, _number: int) -> ChangedFiles:
        """The files of the head and base that are there now."""
        world = self.world
        paths = world.paths_of(world.head, world.base)
        return ChangedFiles(paths, True, head=world.head, base=world.base)

    async def ci_run(self, _repo: object, run_id: str, attempt: int) -> CiRun:
        """The run of that number, which tests this head and no other."""
        return CiRun(
            id=run_id,
            attempt=attempt,
            trigger=CiTrigger.PULL_REQUEST,
            head_sha=HEADS[int(run_id)],
            head_branch="change",
            of_fork=False,
            pull_requests=(),
            is_running=True,
            outcome=CheckOutcome.RUNNING,
            started_at=START,
            url="",
        )


class InMemory:
    """The database of the histories of this process, one after another."""

    def __init__(self) -> None:
        self.engine = create_engine("sqlite://", poolclass=StaticPool)
        METADATA.create_all(self.engine)
        with self.engine.begin() as session:
            org = access.ensure_organization(session, "github.test", "7", "octo")
            self.repository = access.upsert_repository(session, org.id, a_repository())

    async def write(self, call: Callable[[Connection], T], _boundaries: object) -> T:
        with self.engine.begin() as session:
            return call(session)

    async def read(self, call: Callable[[Connection], T]) -> T:
        return await self.write(call, None)

    def forget(self) -> None:
        """Forget a history."""
        with self.engine.begin() as session:
            for name in ("consent", "pull_request", "heard_command"):
                session.execute(METADATA.tables[name].delete())


_DATABASES: list[InMemory] = []


def _database() -> InMemory:
    if not _DATABASES:
        _DATABASES.append(InMemory())
    _DATABASES[0].forget()
    return _DATABASES[0]


@dataclass
class Forks:
    """A pull request, the people around it, and what Headgate has heard of it so far."""

    seed: int
    chance: random.Random = field(init=False)
    s: float = 0.0
    changed_s: float = 0.0
    based_s: float | None = None
    head: Sha = HEADS[0]
    newest: int = 0
    force_push: ForcePush | None = None
    base: str = BASES[0]
    is_closed: bool = False
    is_fork: bool = True
    rights: dict[str, AccessLevel] = field(default_factory=lambda: dict(RIGHTS))
    said: list[Said] = field(default_factory=list)
    post: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    queued: Facts | None = None
    tested: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        database = _database()
        self.repository = database.repository
        self.skew_s = self.chance.choice((0, 20, -20))
        self.is_fork = self.chance.random() < 0.8
        self.sensitive = {
            (head, base) for head in HEADS for base in BASES if self.chance.random() < 0.3
        }
        self.is_patient = self.chance.random() < PATIENT_SHARE
        # What is asked of the runtime by the rules that are played; the rest is not reached.
        clock = SimpleNamespace(
            now=lambda: START + timedelta(seconds=self.s), monotonic_s=lambda: self.s
        )
        runtime = SimpleNamespace(
            store=Store(cast(Any, database), "sqlite", clock),
            providers={self.repository.ref.host: Github(self)},
            clock=clock,
            memory=Memory(),
        )
        self.runtime = cast(Runtime, runtime)

    # --- what is true at the provider

    def at(self, s: float) -> ProviderTime:
        """A moment by the provider's clock, which has whole seconds."""
        return ProviderTime(START + timedelta(seconds=int(s + self.skew_s)))

    def paths_of(self, head: Sha, base: str) -> tuple[str, ...]:
        return ("a.txt", WORKFLOW) if (head, base) in self.sensitive else ("a.txt",)

    def pull(self) -> PullRequest:
        """The pull request as the provider shows it now."""
        return PullRequest(
            number=NUMBER,
            title="",
            body="",
            author="dave",
            author_id=PEOPLE["dave"].id,
            state=PullRequestState.CLOSED if self.is_closed else PullRequestState.OPEN,
            draft=False,
            base_branch=self.base,
            base_tip=None,
            head_branch="change",
            head_sha=self.head,
            head_repo="dave/widgets",
            is_fork=self.is_fork,
            merge_commit=None,
            mergeability=Mergeability.MERGEABLE,
            blockers=(),
            labels=(),
            url="",
            shown_at=self.at(self.changed_s),
            base_changed_at=None if self.based_s is None else self.at(self.based_s),
            force_push=self.force_push,
        )

    def changes(self) -> None:
        """Something changed there now: a delivery shows it, now, later, twice or never."""
        self.changed_s = self.s
        pull = self.pull()
        self._sends(lambda: self.hears(pull))

    def _sends(self, one: Callable[[], Awaitable[None]]) -> None:
        copies = self.chance.choices((0, 1, 2), (2, 6, 1))[0]
        self.post += [one] * copies

    # --- what people do

    async def pushes(self) -> None:
        """A plain push of a commit that was not there before."""
        self.newest += 1
        self.head = HEADS[self.newest]
        self.changes()

    def _goes_to(self, head: Sha) -> None:
        """Push a head that was there: by force unless it has the present one behind it."""
        if HEADS.index(head) < HEADS.index(self.head):
            self.force_push = ForcePush(self.at(self.s), head)
        self.head = head

    async def returns(self) -> None:
        self._goes_to(self.chance.choice(HEADS[: self.newest + 1]))
        self.changes()

    async def swaps(self) -> None:
        """A comment is written while another head is there, of which no delivery arrives."""
        kept, before = self.head, len(self.post)
        self._goes_to(self.chance.choice(HEADS[: self.newest + 2]))
        self.newest = max(self.newest, HEADS.index(self.head))
        self.s += 2
        await self.says()
        del self.post[before:-1]
        self.s += 2
        self._goes_to(kept)
        self.changes()

    async def races(self) -> None:
        """A maintainer comments, and a push in the same second is heard of first."""
        await self.says()
        await self.pushes()
        await self.hears(self.pull())

    async def retargets(self) -> None:
        self.base = BASES[1 - BASES.index(self.base)]
        self.based_s = self.s
        self.changes()

    async def closes(self) -> None:
        self.is_closed = not self.is_closed
        self.changes()

    async def says(self) -> None:
        """Somebody submits, by any means; rarely cancels."""
        if self.is_patient:
            self.s += 5
        login = self.chance.choice((*PEOPLE, "mia", "mia", "will"))
        source = self.chance.choice((*AskSource, AskSource.COMMENT, AskSource.COMMENT))
        ask = AskSubmit(sha=self.head if self.chance.random() < 0.3 else None)
        is_cancel = self.chance.random() < 0.15
        id_ = str(len(self.said) + 1)
        where = Where(a_repository().id, self.repository.ref)
        asked = Asked(
            where,
            NUMBER,
            PEOPLE[login],
            AskCancel() if is_cancel else ask,
            source,
            id_,
            self.at(self.s),
        )
        said = Said(asked, self.head, self.base)
        self.said.append(said)
        self.changes()
        self.post.append(lambda: self.answers(said))
        if self.chance.random() < 0.3:
            self.post.append(lambda: self.answers(said))

    async def changes_rights(self) -> None:
        login = self.chance.choice(list(PEOPLE))
        lost = self.rights[login] is RIGHTS[login]
        self.rights[login] = AccessLevel.READ if lost else RIGHTS[login]

    async def token_submits(self) -> None:
        """A token of role `queue` asks the same question."""
        pull = self.pull()
        await self.meanwhile()
        try:
            await consents.check_fork(self.runtime, self.queue(pull), pull, QueueConfig())
        except Invalid:
            return
        await self.submits(pull)

    async def job_sends_targets(self) -> None:
        """A job sends the impacted targets of some head, by its own token or by one of all jobs."""
        chance = self.chance
        run, number = chance.randrange(3), chance.choice((None, NUMBER, NUMBER, 4))
        own = ProvedJob("101", str(run), 1, CiTrigger.PULL_REQUEST, Sha("f" * 40), "change", number)
        job = chance.choice((own, own, None))
        repo = self.repository
        caller = Caller(
            token_id="" if job else "t1",
            name="CI",
            org_id=repo.org_id,
            org_slug="octo",
            host=repo.ref.host,
            role=Role.CI,
            repositories=None,
            job=job,
        )
        sha = chance.choice((None, *HEADS[:3]))
        upload = impacted_targets.Upload(NUMBER, sha, Targets())
        try:
            queue = self.queue(self.pull())
            taken = await impacted_targets.own_upload(self.runtime, queue, upload, caller)
        except NotAllowed:
            return
        if job is None or number != NUMBER or taken.sha != HEADS[run]:
            raise Violation("a job has set the targets of what it does not test")

    # --- what Headgate does

    async def post_comes(self) -> None:
        if self.post:
            await self.post.pop(self.chance.randrange(len(self.post)))()

    async def sweeps(self) -> None:
        await self.hears(self.pull())

    async def meanwhile(self) -> None:
        """Between a read and what is done by it, something else may happen."""
        if self.chance.random() < 0.2:
            self.s += self.chance.choice((0.2, 1, 4))
            await self.chance.choice(MEANWHILE)(self)

    def queue(self, pull: PullRequest) -> QueueRef:
        repo = self.repository
        return QueueRef(1, repo.org_id, repo.id, repo.ref, pull.base_branch)

    def value(self, pull: PullRequest) -> MergeQueue:
        return MergeQueue(id=1, uid="uid", branch=pull.base_branch, config=QueueConfig())

    async def hears(self, pull: PullRequest) -> None:
        """Take in what a delivery or a sweep shows."""
        head = PullRequestHead(self.repository.id, NUMBER, pull.head_sha)
        is_closed = pull.state is PullRequestState.CLOSED
        shown = facts._shown(self.queue(pull), pull)
        if self.chance.random() < 0.5:  # a delivery tells nothing of force pushes
            shown = ShownHead(head, pull.base_branch, pull.is_fork, is_closed, pull.shown_at)
        now = self.runtime.clock.now()
        await self.runtime.store.run(stored.note_shown, shown, now)
        for one in self.said:
            is_other = not one.is_for(pull.head_sha, pull.base_branch)
            at = one.asked.at
            is_later = at is not None and pull.shown_at is not None and pull.shown_at >= at
            if one.is_given and is_later and (is_closed or is_other):
                one.is_over = True

    async def answers(self, said: Said) -> None:
        """Answer a command as `comments.answer_comment` does, up to its submission."""
        runtime, store, pull = self.runtime, self.runtime.store, self.pull()
        place = Place(self.repository, pull, self.queue(pull), self.value(pull))
        command = CommentCommand.at(place, said.asked)
        record = command.record
        known = await store.read(
            answered_commands.answered_among,
            record.repository_id,
            record.source,
            [record.source_id],
        )
        if known or await comments._is_overtaken(runtime, command):
            return
        if not comments._is_allowed_source(command):
            return
        level = await runtime.providers[self.repository.ref.host].access(
            self.repository.ref, said.asked.actor
        )
        command = replace(command, level=level)
        if isinstance(said.asked.ask, AskSubmit) and pull.is_fork:
            patterns = command.config.sensitive_paths
            await self.meanwhile()
            files = await consents.sensitive_files(runtime, self.repository.ref, pull, patterns)
            command = replace(command, sensitive=files)
        if comments._denial_of(runtime, command) is None:
            await self.meanwhile()
            await self.carries_out(said, command)

    async def carries_out(self, said: Said, command: CommentCommand) -> None:
        runtime, store, ask = self.runtime, self.runtime.store, said.asked.ask
        if isinstance(ask, AskSubmit):
            if await comment_commands._submission_refusal(runtime, command, ask) is not None:
                return
            consent = comment_commands._consent_of(command)
            if consent is not None:
                await store.run(stored.give, consent)
                said.is_given = True
            who = said.asked.actor
            if RIGHTS[who.login] < AccessLevel.WRITE or who.kind is not ActorKind.PERSON:
                raise Violation(f"{who.login} has submitted without the right")
            await self.submits(command.pull)
        else:
            await store.run(stored.end, self.repository.id, NUMBER)
            self.queued = None
            for one in self.said:
                one.is_over = one.is_over or one.is_given or self._is_before(one, said)
        now = runtime.clock.now()
        await store.run(answered_commands.record, command.record, now)

    def _is_before(self, one: Said, other: Said) -> bool:
        mine, its = one.asked.at, other.asked.at
        return mine is not None and its is not None and mine < its

    async def submits(self, pull: PullRequest) -> None:
        shown = facts._shown(self.queue(pull), pull)
        now = self.runtime.clock.now()
        (authorized,) = await self.runtime.store.run(facts._remember, [shown], now)
        self.queued = facts._plain(pull, authorized, self.queue(pull).repo)

    async def builds(self) -> None:
        """Build a test branch of what is queued, if the engine would and the right still stands."""
        known = self.queued
        if known is None or not known.is_fork or known.authorized_head != known.head:
            return
        pull = replace(self.pull(), base_branch=known.base)
        value = replace(self.value(pull), entries={NUMBER: an_entry(NUMBER, facts=known)})
        steps = [HeadToMerge(NUMBER, known.head, True)]
        if await consents.lost(self.runtime, self.queue(pull), value, steps):
            self.queued = None
            return
        self.tested += 1
        self.proved(known)

    def proved(self, known: Facts) -> None:
        """Raise Violation unless a person with the right has let in exactly this."""
        is_sensitive = (known.head, known.base) in self.sensitive
        needs = AccessLevel.MAINTAIN if is_sensitive else AccessLevel.WRITE
        proofs = [one for one in self.said if one.lets_in and one.is_for(known.head, known.base)]
        if not proofs:
            other = BASES[1 - BASES.index(known.base)]
            is_other = any(one.lets_in and one.is_for(known.head, other) for one in self.said)
            raise Violation(f"nobody let in this {'base' if is_other else 'head'}")
        proofs = [one for one in proofs if not one.is_over]
        if not proofs:
            raise Violation("the consent had ended")
        if all(self.rights[one.asked.actor.login] < needs for one in proofs):
            raise Violation("none of those who let it in has the right")


Move = Callable[[Forks], Awaitable[None]]

MEANWHILE = (Forks.pushes, Forks.returns, Forks.retargets, Forks.changes_rights)

MOVES: tuple[tuple[int, Move], ...] = (
    *(
        (3, Forks.pushes),
        (3, Forks.returns),
        (2, Forks.swaps),
        (2, Forks.races),
        (2, Forks.retargets),
        (1, Forks.closes),
        (6, Forks.says),
    ),
    *((2, Forks.changes_rights), (2, Forks.token_submits), (2, Forks.job_sends_targets)),
    *((14, Forks.post_comes), (3, Forks.sweeps), (8, Forks.builds)),
)
EVERY = tuple(move for weight, move in MOVES for _ in range(weight))


async def _played(seed: int) -> Forks:
    world = Forks(seed)
    world.changes()
    for _ in range(TURNS):
        world.s += world.chance.choice((0.3, 1, 2, 10))
        await world.chance.choice(EVERY)(world)
    return world


def play(seed: int) -> Forks:
    """Play one history to its end. Raises Violation."""
    return asyncio.run(_played(seed))
