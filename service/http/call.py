"""What a handler gets beside its request: the parts of the process, and who is asking."""

from typing import NamedTuple

from service.accounts import access
from service.http.callers import Caller
from service.mergequeue.api.fragments import Fragments
from service.runtime import Runtime
from service.vocabulary import Actor


class Call(NamedTuple):
    """One request after every check that does not depend on its body."""

    runtime: Runtime
    fragments: Fragments
    caller: Caller

    @property
    def actor(self) -> Actor:
        """The caller as an actor of commands."""
        return access.actor_of(self.caller)

    @property
    def public_url(self) -> str | None:
        """Where this deployment is reached, None when nobody said."""
        return self.runtime.options.public_url
