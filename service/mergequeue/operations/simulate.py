"""Replay a queue's history under other settings.

Reading is one snapshot of the database. Comparing is computation alone, seconds to minutes of
it, and belongs into a process that answers nobody meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from service.accounts.store import access
from service.database.database import Tx
from service.errors import NotFound
from service.mergequeue.engine.config import ConfigValue, QueueConfig, changed
from service.mergequeue.simulation import figures, past, replay, ruling
from service.mergequeue.simulation.figures import Figures
from service.mergequeue.simulation.history import History
from service.mergequeue.store import history, queues
from service.runtime import Runtime
from service.vocabulary import RepoRef

Progress = Callable[[str, int, int], None]
"""Called with the side that is replayed, its number of submissions, and how many have ended."""

BASELINE, CHANGED = "baseline", "changed"
"""The two sides of a comparison."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A queue's own settings and history."""

    config: QueueConfig
    history: History


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of the same submissions under two settings.

    `left_out` has the rules that read what is not known of some submissions, and of how many.
    """

    submissions: int
    baseline: Figures
    changed: Figures
    left_out: Mapping[str, int]


async def recorded(runtime: Runtime, repo: RepoRef, branch: str, span: timedelta) -> Recorded:
    """Return the settings and the history of a branch's queue, for a time that ends now.

    Raises NotFound: repository_not_found, queue_not_found, history_not_found.
    """
    since = runtime.clock.now() - span
    found = await runtime.store.read(_recorded, repo, branch, since)
    if not found.history.arrivals:
        raise NotFound(
            f'no submission to the queue for "{branch}" has ended since {since:%Y-%m-%d}.',
            code="history_not_found",
        )
    return found


def _recorded(session: Tx, repo: RepoRef, branch: str, since: datetime) -> Recorded:
    record = access.repository_by_ref(session, None, repo)
    if record is None:
        raise NotFound(
            f"there is no repository {repo.slug} of {repo.host} here.", code="repository_not_found"
        )
    queue = queues.queue_ref(session, record.org_id, record.id, branch)
    if queue is None:
        branches = ", ".join(ref.branch for ref in queues.queues_of(session, record.id))
        there = f"; queues here: {branches}" if branches else ""
        raise NotFound(f'branch "{branch}" has no queue{there}.', code="queue_not_found")
    config = queues.load(session, queue.id).config
    return Recorded(config, past.history_of_past(history.past(session, queue, since)))


def compare(
    histories: Sequence[History],
    config: QueueConfig,
    changes: Mapping[str, ConfigValue],
    seed: int,
    report: Progress,
) -> Comparison:
    """Return each history replayed under the settings and under the changed ones.

    The changes have been checked. The histories are queues of their own, counted together.
    """
    (compared,) = compare_each(histories, config, [changes], seed, report)
    return compared


def compare_each(
    histories: Sequence[History],
    config: QueueConfig,
    variants: Iterable[Mapping[str, ConfigValue]],
    seed: int,
    report: Progress,
) -> Iterator[Comparison]:
    """Return the same for each of several changes, one after the other."""
    of = sum(len(one.arrivals) for one in histories)
    baseline = _replayed(histories, config, seed, partial(report, BASELINE, of))
    for changes in variants:
        after = changed(config, changes)
        yield Comparison(
            submissions=of,
            baseline=baseline,
            changed=_replayed(histories, after, seed, partial(report, CHANGED, of)),
            left_out=_left_out(histories, (config, after)),
        )


def _left_out(histories: Sequence[History], configs: Iterable[QueueConfig]) -> Mapping[str, int]:
    rules = {rule.name: rule for config in configs for rule in config.rules}
    arrivals = (arrival for one in histories for arrival in one.arrivals)
    return ruling.left_out(rules.values(), arrivals)


def _replayed(
    histories: Sequence[History], config: QueueConfig, seed: int, report: Callable[[int], None]
) -> Figures:
    found = []
    before = 0
    for one in histories:
        found.append(replay.replay(one, config, seed, partial(_report_after, report, before)))
        before += len(one.arrivals)
    return figures.figures_of(found)


def _report_after(report: Callable[[int], None], before: int, ended: int) -> None:
    report(before + ended)
