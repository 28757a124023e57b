"""The first argument of every operation: the parts the process is made of.

Built once, in `bot/wiring.py`. Only the mappings may grow while running.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Protocol, TypeVar, cast

from service.body_budget import BodyBudget
from service.clock import Clock, Ids
from service.crash_points import CrashPoints
from service.database.database import Store
from service.database.page_tokens import TagKeys
from service.database.wakeups import Wakeups
from service.limits import Rate
from service.memory import Memory
from service.parsers import Parsers
from service.provider.ci import ProvedJob
from service.provider.errors import ProviderError
from service.provider.port import Provider
from service.provider.signals import Delivery, Signal
from service.telemetry import SILENT, Meter
from service.tracing import OFF, Traces
from service.troubles import Troubles
from service.vocabulary import Actor, Network


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key that signs evidence of landings: its id, public half, sealed private half."""

    id: str
    public: str
    sealed: bytes


class Keys(TagKeys, Protocol):
    """Derives digests, tags and sealed secrets from the deployment's secret key."""

    def token_digest(self, token: str) -> bytes:
        """The keyed hash under which an API token is stored (docs/design/security.md 1)."""
        ...

    def token_digests(self, token: str) -> tuple[bytes, ...]:
        """The hashes under the present and the previous key, to compare with."""
        ...

    def form_tag(self, credential: str) -> str:
        """The secret field of forms that are sent with a credential (docs/design/security.md 6)."""
        ...

    def sealed(self, text: str) -> bytes:
        """A secret of others as it is stored (docs/design/security.md 1)."""
        ...

    def opened(self, sealed: bytes) -> str:
        """That secret again. Raises ServiceError when neither key sealed it."""
        ...

    def new_signing_key(self) -> MadeKey:
        """A new key that signs evidence of landings (docs/design/security.md 12)."""
        ...

    def signed(self, sealed: bytes, payload: bytes) -> str:
        """An in-toto Statement in an envelope, signed. Raises as `opened`."""
        ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request to an endpoint of a user: its address and signed body."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class PostResult:
    """The result of one request. `error` is None after success.

    `status` is None without a response; `retry_after` is the response's header as sent.
    """

    status: int | None
    error: str | None
    retry_after: str | None = None


class Sender(Protocol):
    """Sends requests to addresses that users give."""

    async def refusal(self, url: str) -> str | None:
        """Return why this address may not be called now, in a sentence; None if it may."""
        ...

    async def post(self, outgoing: Outgoing) -> PostResult:
        """Make one attempt; never raises for what the receiver or the network did."""
        ...


class JobTokens(Protocol):
    """Verifies the tokens by which jobs of a provider's CI prove who they are."""

    host: str

    async def job_of(self, token: str) -> ProvedJob:
        """The job that a token proves.

        Raises Unauthenticated for a token that proves none, Unavailable while the keys that it
        is verified with cannot be read.
        """
        ...


class OtherCiTokens(Protocol):
    """Verifies the tokens of jobs of CI systems beside the provider's own."""

    async def job_of(self, token: str, accepted: Sequence[str], repository: str) -> ProvedJob:
        """The job that a token proves, if `accepted` names its issuer and its project.

        `accepted` is the setting `report_issuers` of the repository, whose name is for people.
        Raises Unauthenticated, and Unavailable while the issuer's keys cannot be read.
        """
        ...


class SignIn(Protocol):
    """Lets the provider say who a visitor of pages is (docs/design/security.md 6).

    `name` is the provider's, as people know it; `callback` is the path to which browsers return.
    """

    host: str
    name: str
    callback: str

    def address(self, state: str, verifier: str) -> str:
        """Return where the browser goes to sign in; it comes back with `state` and a code."""
        ...

    async def person_of(self, code: str, verifier: str) -> Actor:
        """Exchange a code, which is valid once, for the person who signed in.

        Raises Unauthenticated for a code that is wrong or used, ProviderError otherwise.
        """
        ...


Translator = Callable[[Delivery], tuple[Signal, ...]]
"""A provider's own table from a delivery to signals; pure."""


@dataclass(frozen=True, slots=True)
class Periods:
    """The period of each sweep (docs/design/transactions.md 8)."""

    timers: timedelta = timedelta(seconds=5)
    readback: timedelta = timedelta(seconds=10)
    run_checks: timedelta = timedelta(seconds=60)
    queues: timedelta = timedelta(seconds=60)
    idle: timedelta = timedelta(minutes=10)
    redelivery: timedelta = timedelta(minutes=10)
    orphans: timedelta = timedelta(minutes=10)
    tests: timedelta = timedelta(seconds=60)
    comments: timedelta = timedelta(minutes=2)


class EnumCase(StrEnum):
    """The spellings of enums in answers: as the specification writes them, or in lower case."""

    SPEC = "spec"
    LOWER = "lower"


class Compatibility(StrEnum):
    """The clients that read our answers (docs/design/http.md 14)."""

    NONE = "none"
    TRUNK = "trunk"


class DashboardAuth(StrEnum):
    """The ways to know visitors of pages (docs/design/security.md 6).

    `loopback`: everyone on this machine; `token`: by an API token; `github`: by a sign-in at the
    provider; `off`: there are no pages.
    """

    GITHUB = "github"
    OFF = "off"
    LOOPBACK = "loopback"
    TOKEN = "token"


READS = Rate(200, 1_000)
WRITES = Rate(50, 500)
UPLOADS = Rate(50, 500)
METRICS = Rate(5, 20)
AUTH_FAILURES = Rate(10, 100)


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of requests; by token, and `auth_failure` by address. None: freely.

    Each process counts by itself.

    See docs/design/limits.md 3.
    """

    read: Rate | None = READS
    write: Rate | None = WRITES
    upload: Rate | None = UPLOADS
    metrics: Rate | None = METRICS
    auth_failure: Rate | None = AUTH_FAILURES


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that operations and faces read.

    `public_url` without a trailing slash, None: no links. `X-Forwarded-For` counts from
    `trusted_proxies` alone. `fingerprint` stands for the settings that all instances share.
    `main_host` is the one that addresses of pages leave out, None: they leave out every one.
    `admins` are people who may administer every organization: the provider's numeric ids, and
    logins in lower case.
    Pages of the origin `framed_by` may show ours in a frame; no setting sets it.
    `security_contact` is an address for reports of weaknesses of this deployment.
    """

    version: str
    fingerprint: str = ""
    public_url: str | None = None
    auto_create_queues: bool = True
    enum_case: EnumCase = EnumCase.SPEC
    compatibility: Compatibility = Compatibility.NONE
    rates: Rates = field(default_factory=Rates)
    trusted_proxies: tuple[Network, ...] = ()
    main_host: str | None = None
    dashboard_auth: DashboardAuth = DashboardAuth.TOKEN
    admins: frozenset[str] = frozenset()
    framed_by: str | None = None
    security_contact: str | None = None
    periods: Periods = field(default_factory=Periods)


Link = TypeVar("Link")


class Links:
    """Functions of one capability that another one calls, one object of each type.

    The capability that calls declares the type, and the package that knows both adds the object.
    """

    def __init__(self, *links: object) -> None:
        self._links = {type(link): link for link in links}

    def of(self, kind: type[Link]) -> Link:
        """Return the object of this type. Raises KeyError if it was not added."""
        return cast(Link, self._links[kind])


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of one process.

    `parsers` run parsers of foreign bytes in processes, `replays` is the place for one that
    replays a queue's history. `instance` is the name under which it claims work; others that
    serve the same database have other names. `unproved` bounds the request bodies whose sender is
    not known yet. `job_tokens` and `other_ci` None: jobs of CI cannot prove themselves. `sign_in`
    None: visitors of pages do not sign in at the provider.
    """

    store: Store
    providers: Mapping[str, Provider]
    translators: Mapping[str, Translator]
    clock: Clock
    ids: Ids
    wakeups: Wakeups
    crash_points: CrashPoints
    keys: Keys
    sender: Sender
    options: Options
    instance: str = "alone"
    telemetry: Meter = SILENT
    traces: Traces = OFF
    job_tokens: JobTokens | None = None
    other_ci: OtherCiTokens | None = None
    sign_in: SignIn | None = None
    links: Links = field(default_factory=Links)
    memory: Memory = field(default_factory=Memory)
    parsers: Parsers = field(default_factory=Parsers)
    replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    unproved: BodyBudget = field(default_factory=BodyBudget)

    @property
    def troubles(self) -> Troubles:
        """Return what keeps this process from working."""
        return self.store.troubles

    def provider_of(self, host: str) -> Provider:
        """Return the provider of a host. Raises ProviderError if there is none."""
        provider = self.providers.get(host)
        if provider is None:
            raise ProviderError(f"No provider is set for {host}.")
        return provider
