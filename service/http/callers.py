"""The caller of the API, and what a handler gets beside the request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

from multidict import istr

from service.provider.ci import ProvedJob
from service.runtime import Options, Runtime
from service.vocabulary import Actor, ActorKind, Channel, Role

Cache = TypeVar("Cache")

NO_TOKEN = (
    "Missing or unknown x-api-token. Create one with `headgate token create`, and send it in the"
    " header x-api-token."
)
"""The answer to every request without a token that exists."""

CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="headgate"'}
"""Headers of that answer."""

FORKED_RUN = istr("x-forked-workflow-run-id")
"""The header in which a CI run of a fork names itself instead of sending a token."""


REPOSITORY = istr("x-headgate-repository")
"""The header in which a job of another CI system names its repository, as `github.com/o/n`."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A token's organization and its host, role and scope.

    `repositories` are the repository ids it is limited to, None: all of the organization. A
    fork's CI run has no token; its `token_id` is empty. So is that of a `job` that proved itself,
    and of a person on the pages. `visitor` is who acts there.
    """

    token_id: str
    name: str
    org_id: int
    org_slug: str
    host: str
    role: Role
    repositories: frozenset[int] | None
    job: ProvedJob | None = None
    visitor: Actor | None = None

    @property
    def actor(self) -> Actor:
        """The caller as an actor of commands and events."""
        if self.visitor is not None:
            return self.visitor
        if not self.token_id:
            return Actor(ActorKind.BOT, login=self.name, channel=Channel.API)
        return Actor(ActorKind.TOKEN, login=self.name, id=self.token_id, channel=Channel.API)


class Caches:
    """The caches that handlers keep as long as the application lives: one object of each class."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kept: dict[Callable[[Options], object], object] = {}

    def of(self, make: Callable[[Options], Cache]) -> Cache:
        """Return the object that `make` makes of the options; it is made once."""
        if make not in self._kept:
            self._kept[make] = make(self._options)
        return cast(Cache, self._kept[make])


class Call(NamedTuple):
    """One request after every check that does not depend on its body."""

    runtime: Runtime
    caches: Caches
    caller: Caller

    @property
    def actor(self) -> Actor:
        """The caller as an actor of commands."""
        return self.caller.actor

    def cache(self, make: Callable[[Options], Cache]) -> Cache:
        """Return what handlers keep for the life of the application (`Caches.of`)."""
        return self.caches.of(make)

    @property
    def public_url(self) -> str | None:
        """Return where this deployment is reached, None if the operator did not say."""
        return self.runtime.options.public_url
