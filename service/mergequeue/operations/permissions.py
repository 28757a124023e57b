"""Who may ask what (UX.md 2.3, RELIABILITY.md 8.2).

The role is the provider's, read afresh for the numeric user id; unknown is denied.
"""

from dataclasses import replace

from service.mergequeue.operations.wishes import Asking
from service.mergequeue.wording import replies
from service.mergequeue.wording.answers import Answer
from service.mergequeue.wording.replies import Denial, Wish
from service.provider.signals import (
    Ask,
    AskCancel,
    AskDrain,
    AskHelp,
    AskPause,
    AskResume,
    AskRetry,
    AskStatus,
    AskSubmit,
    AskUnclear,
)
from service.provider.values import (
    AccessLevel,
)
from service.runtime import Runtime

HIGH = 10
"""Priorities below this one need maintain access."""
SENSITIVE_FOLDER = ".github/"
SENSITIVE_NAMES = frozenset({"action.yml", "action.yaml", "headgate.yml", "CODEOWNERS"})
"""What a fork may only change with maintain access: CI itself (RELIABILITY.md 8.3)."""

NEEDS: dict[type[Ask], tuple[AccessLevel, Wish]] = {
    AskHelp: (AccessLevel.READ, Wish.STATUS),
    AskStatus: (AccessLevel.READ, Wish.STATUS),
    AskUnclear: (AccessLevel.READ, Wish.STATUS),
    AskCancel: (AccessLevel.TRIAGE, Wish.CANCEL),
    AskSubmit: (AccessLevel.WRITE, Wish.SUBMIT),
    AskRetry: (AccessLevel.WRITE, Wish.RETRY),
    AskPause: (AccessLevel.MAINTAIN, Wish.PAUSE),
    AskResume: (AccessLevel.MAINTAIN, Wish.RESUME),
    AskDrain: (AccessLevel.MAINTAIN, Wish.DRAIN),
}
"""Rights by wish; a pull request's author may always cancel it."""


async def denial(runtime: Runtime, asking: Asking) -> Answer | None:
    """Why this person may not ask this; None: may.

    The author and anybody with triage are answered in words each time, anybody else once on
    each pull request: then the bot does not look dead, and nobody can make it write more.
    """
    needed, wish = await _needs(runtime, asking)
    if asking.level >= needed:
        return None
    if isinstance(asking.asked.ask, AskCancel) and asking.is_by_author:
        return None
    refusal = replies.denied(
        Denial(
            login=asking.asked.actor.login,
            slug=asking.repository.ref.slug,
            wish=wish,
            needs=needed,
            has=asking.level,
        )
    )
    belongs = asking.level >= AccessLevel.TRIAGE or asking.is_by_author
    is_told = belongs or runtime.commands.is_first_denial(_person(asking))
    return refusal if is_told else replace(refusal, text=None)


def _person(asking: Asking) -> str:
    """A person on one pull request, as a key."""
    actor = asking.asked.actor
    return f"{asking.repository.id}#{asking.pull.number}/{actor.id or actor.login}"


async def _needs(runtime: Runtime, asking: Asking) -> tuple[AccessLevel, Wish]:
    ask = asking.asked.ask
    if not isinstance(ask, AskSubmit):
        return NEEDS[type(ask)]
    if ask.priority is not None and ask.priority < HIGH:
        return AccessLevel.MAINTAIN, Wish.URGENT
    if not asking.pull.is_fork:
        return NEEDS[AskSubmit]
    repo = asking.repository.ref
    changed = await runtime.providers[repo.host].changed_files(repo, asking.pull.number)
    if not changed.complete or any(is_sensitive(path) for path in changed.paths):
        return AccessLevel.MAINTAIN, Wish.SENSITIVE_FORK
    return NEEDS[AskSubmit]


def is_sensitive(path: str) -> bool:
    """Whether a fork's change to this path can touch CI or the rules of review."""
    return path.startswith(SENSITIVE_FOLDER) or path.rsplit("/", 1)[-1] in SENSITIVE_NAMES
