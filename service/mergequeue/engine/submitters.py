"""The submitter of an entry, whom shares and budgets count (docs/design/budgets.md 2)."""

from service.mergequeue.engine.model import Entry
from service.vocabulary import Actor, ActorKind

_AGENTS = frozenset({ActorKind.BOT, ActorKind.TOKEN})
_ASKED_ITSELF = frozenset({ActorKind.PERSON, ActorKind.BOT})


def submitter_of(entry: Entry) -> str:
    """Return the identity of the submitter: see `identity_of`."""
    return identity_of(entry.submitted_by, entry.facts.author)


def identity_of(actor: Actor, author: str) -> str:
    """Return `token/ID` for a token, else the login of the person or App that asked.

    A person who submits an App's pull request counts as that person. What entered by a rule, which
    is nobody's request, counts for its author.
    """
    if actor.kind is ActorKind.TOKEN:
        return f"token/{actor.id}"
    return actor.login if actor.kind in _ASKED_ITSELF else author


def is_agent(entry: Entry) -> bool:
    """Return whether an agent submitted it: a token, an App or another bot account."""
    actor = entry.submitted_by
    if actor.kind in _ASKED_ITSELF or actor.kind is ActorKind.TOKEN:
        return actor.kind in _AGENTS
    return entry.facts.author.endswith("[bot]")
