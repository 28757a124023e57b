"""Messages about conflicts between open pull requests. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.conflict_pairs import ConflictPair, LandingOrder
from service.notifications.messages import Message, common_fields, message_of
from service.provider.values import ListedPullRequest
from service.vocabulary import QueueRef

FORESEEN, GONE = "conflict.foreseen", "conflict.gone"


@dataclass(frozen=True, slots=True)
class Scene:
    """The queue, its open pull requests by number, and the orders that need the fewest rebases."""

    organization: str
    queue: QueueRef
    heads: Mapping[int, ListedPullRequest]
    orders: Sequence[LandingOrder]
    now: datetime


def foreseen(scene: Scene, pair: ConflictPair) -> Message:
    """Return `conflict.foreseen`: one of the two conflicts once the other has landed."""
    with_it = (one for one in scene.orders if pair.low in (*one.first, *one.rebased))
    order = next(with_it, None)
    rebased = () if order is None else order.rebased
    fields = _fields(FORESEEN, scene, pair)
    fields["rebases"] = [number for number in (pair.low, pair.high) if number in rebased]
    fields["advice"] = None if order is None else order.text
    return message_of(FORESEEN, scene.now, fields)


def gone(scene: Scene, pair: ConflictPair) -> Message:
    """Return `conflict.gone`: a head has moved, was closed or has landed."""
    return message_of(GONE, scene.now, _fields(GONE, scene, pair))


def _fields(name: str, scene: Scene, pair: ConflictPair) -> dict[str, object]:
    repo = scene.queue.repo
    sides = ((pair.low, pair.head_low), (pair.high, pair.head_high))
    return {
        **common_fields(name, scene.organization, scene.now),
        "repository": {"host": repo.host, "owner": repo.owner, "name": repo.name},
        "target_branch": scene.queue.branch,
        "pull_requests": [
            {"number": number, "head": head, "author": _author(scene, number)}
            for number, head in sides
        ],
        "paths": list(pair.paths),
    }


def _author(scene: Scene, number: int) -> str | None:
    there = scene.heads.get(number)
    return (there.author or None) if there is not None else None
