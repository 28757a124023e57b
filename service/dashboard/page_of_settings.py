"""The settings of a queue: each with its source, a form, and a replay with other values."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

from pydantic.alias_generators import to_camel

from service.accounts import page_addresses
from service.dashboard import requests, setting_fields
from service.dashboard.charts import duration
from service.dashboard.requests import Action, PageRequest
from service.dashboard.setting_fields import FIELDS, GROUPS, SettingField, field_of, text_of
from service.errors import Malformed
from service.mergequeue.engine.config import ConfigValue, QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.operations import file_checks, queue_access, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.operations.replaying import Variant
from service.mergequeue.wording.file_checks import Replayed, left_out_texts
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import QueueRef

TRIED = (
    *("concurrency", "bisection_concurrency", "batch", "batching_min_size"),
    *("batching_max_wait_time_minutes", "confirm_failures", "can_optimistically_merge"),
)
"""The settings of the form that replays; the address takes every setting."""

COMPARE = "compare"
"""Asks in the address for a replay of each usual change."""
BATCHES = (2, 4, 8)
"""Sizes of batches that are worth a look."""

MINUS = "\N{MINUS SIGN}"
REPLAY_NEEDS = AccessLevel.WRITE
REPLAY_S = 60
NO_ACCESS = "A replay needs write access."
SLOW = f"The replay took longer than {REPLAY_S} seconds and was stopped. {file_checks.TOO_LONG}"
SAME = "These are the settings that the queue has now. Change one to try it."


class Row(NamedTuple):
    """A figure under both settings, and its change: `better`, `worse` or neither."""

    label: str
    now: str
    then: str
    change: str
    look: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A replay with other values: `tried` has those, `rows` its figures, `trouble` why none.

    `notes` say what was left out.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[SettingField, ...] = ()
    title: str = ""
    submissions: int = 0
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def can_be_saved(self) -> bool:
        """Return whether no file sets one of them."""
        return not any(each.file for each in self.tried)

    @property
    def is_better(self) -> bool:
        """Return whether no figure is worse."""
        return all(row.look != "worse" for row in self.rows)


class ChangeRow(NamedTuple):
    """A usual change: `query` tries it, `ci` is the change of CI time, `look` that of the P95."""

    name: str
    query: str
    p50: str
    p95: str
    ci: str
    look: str


@dataclass(frozen=True, slots=True)
class UsualChanges:
    """A row as it is now and one for each change; there was no time for those `left_out`."""

    rows: tuple[ChangeRow, ...] = ()
    submissions: int = 0
    left_out: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """All settings by group, and the replays that the address asks for."""

    value: MergeQueue
    groups: Mapping[str, tuple[SettingField, ...]]
    tries: tuple[SettingField, ...]
    trial: Trial
    usual: UsualChanges
    before: str = setting_fields.BEFORE
    needs: AccessLevel = REPLAY_NEEDS


async def read(runtime: Runtime, request: PageRequest) -> SettingsPage:
    """Return the page. Raises NotFound(queue_not_found)."""
    queue = await _queue(runtime, request)
    value = await turn.value(runtime, queue.id)
    trial, usual = Trial(), UsualChanges()
    if COMPARE in request.query and not request.form:
        usual = await _compared(runtime, queue, value, request)
    elif request.query and not request.form:
        trial = await _tried(runtime, queue, value, request)
    groups = {
        title: tuple(field_of(value, name) for name in names) for title, names in GROUPS.items()
    }
    tries = tuple(field_of(value, name) for name in TRIED)
    return SettingsPage(value, groups, tries, trial, usual)


async def _tried(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, request: PageRequest
) -> Trial:
    """Return the replay of the last 30 days with the settings in the address."""
    given = dict(request.query)
    try:
        setting_fields.check_names(given)
        now = {name: text_of(own, getattr(value.config, own)) for name, own in FIELDS.items()}
        changes = setting_fields.changes_of(given, now)
    except Malformed as wrong:
        return Trial(given, trouble=requests.faults_of(wrong))
    tried = tuple(field_of(value, name) for name in changes)
    if not request.visitor.may(REPLAY_NEEDS):
        return Trial(given, tried, trouble=NO_ACCESS)
    found = SAME if not changes else await _effects(runtime, queue, value, [changes])
    if isinstance(found, str):
        return Trial(given, tried, trouble=found)
    (effect,) = found
    notes = tuple(left_out_texts(effect.left_out))
    title, rows = _title_of(changes, effect), _rows_of(effect)
    return Trial(given, tried, title, effect.submissions, rows, notes)


async def _effects(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, variants: Sequence[Variant]
) -> tuple[Replayed, ...] | str:
    """Return the figures, or why there are none; replays of pages do not wait for each other."""
    try:
        async with asyncio.timeout(REPLAY_S):
            return await file_checks.effects(runtime, queue, value, variants, waits=False)
    except TimeoutError:
        return SLOW


async def _compared(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, request: PageRequest
) -> UsualChanges:
    """Return the replay of the last 30 days with each of some usual changes."""
    if not request.visitor.may(REPLAY_NEEDS):
        return UsualChanges(trouble=NO_ACCESS)
    usual = usual_changes(value.config)
    found = await _effects(runtime, queue, value, list(usual.values()))
    if isinstance(found, str):
        return UsualChanges(trouble=found)
    now = ChangeRow("As now", "", *_times(found[0].before), "", "")
    rows = (_change_row(*each) for each in zip(usual.items(), found, strict=False))
    left_out = tuple(usual)[len(found) :]
    return UsualChanges((now, *rows), found[0].submissions, left_out)


def usual_changes(config: QueueConfig) -> Mapping[str, Variant]:
    """Return changes that are worth a look, by their names: slots, batches, optimistic merging."""
    slots = {max(1, config.concurrency // 2), config.concurrency + 3, config.concurrency * 2}
    found: dict[str, Variant] = {
        f"Concurrency {each}": {"concurrency": each}
        for each in sorted(slots - {config.concurrency})
    }
    if config.batch:
        found["No batches"] = {"batch": False}
    size = config.batching_min_size if config.batch else None
    for each in BATCHES:
        if each != size:
            found[f"Batches of {each}"] = {"batch": True, "batching_min_size": each}
    is_optimistic = config.can_optimistically_merge
    name = "No optimistic merging" if is_optimistic else "Optimistic merging"
    found[name] = {"can_optimistically_merge": not is_optimistic}
    return found


def _change_row(change: tuple[str, Variant], found: Replayed) -> ChangeRow:
    name, changes = change
    texts = {to_camel(field): text_of(field, value) for field, value in changes.items()}
    p95_now, p95 = (side["time_to_merge_p95_s"] for side in (found.before, found.after))
    ci = _percent(found.before["ci_minutes"], found.after["ci_minutes"])
    look = ""
    if p95_now is not None and p95 is not None and _time(p95_now) != _time(p95):
        look = "better" if p95 < p95_now else "worse"
    return ChangeRow(name, urlencode(texts), *_times(found.after), ci, look)


def _times(side: Mapping[str, float | None]) -> tuple[str, str]:
    return _time(side["time_to_merge_p50_s"]), _time(side["time_to_merge_p95_s"])


def _title_of(changes: Mapping[str, ConfigValue], found: Replayed) -> str:
    """Return `Concurrency 8: P95 41 min → 29 min, CI +6 %`."""
    name, value = next(iter(changes.items()))
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    text = " ".join(text_of(name, value).split())[:40] or "none"
    p95 = " → ".join(_time(side["time_to_merge_p95_s"]) for side in (found.before, found.after))
    ci = _percent(found.before["ci_minutes"], found.after["ci_minutes"])
    return f"{setting_fields.label_of(name)} {text}{more}: P95 {p95}, CI {ci}"


def _rows_of(found: Replayed) -> tuple[Row, ...]:
    """Return the figures of a replay; less is better, except for merges."""
    return (
        _row(found, "Time to merge, median", "time_to_merge_p50_s"),
        _row(found, "Slowest 5 % (P95)", "time_to_merge_p95_s"),
        _row(found, "CI runs per merge", "ci_runs_per_merge"),
        _row(found, "CI minutes", "ci_minutes"),
        _row(found, "Merged", "merged"),
        _row(found, "Failed", "failed"),
        _row(found, "Removed", "cancelled"),
    )


def _row(found: Replayed, label: str, name: str) -> Row:
    now, then = found.before[name], found.after[name]
    if name.endswith("_s"):
        shown = _time(now), _time(then)
    else:
        shown = _count(name, now), _count(name, then)
    if now is None or then is None or shown[0] == shown[1]:
        return Row(label, *shown, "same" if shown[0] == shown[1] else "", "")
    step = then - now
    sign = "+" if step > 0 else MINUS
    if name == "ci_minutes":
        change = _percent(now, then)
    else:
        change = sign + (_time(abs(step)) if name.endswith("_s") else _count(name, abs(step)))
    return Row(label, *shown, change, "better" if (step < 0) != (name == "merged") else "worse")


def _time(seconds: float | None) -> str:
    return "none" if seconds is None else duration(seconds)


def _count(name: str, figure: float | None) -> str:
    if figure is None:
        return "none"
    return f"{figure:,.2f}" if name == "ci_runs_per_merge" else f"{figure:,.0f}"


def _percent(now: float | None, then: float | None) -> str:
    if not now or then is None:
        return "unknown"
    return f"{(then - now) / now * 100:+.0f} %".replace("-", MINUS)


async def save(runtime: Runtime, request: PageRequest) -> str:
    """Change the settings of the form, and lead to the page without a replay."""
    beginning = setting_fields.BEFORE
    before = {
        name.removeprefix(beginning): text
        for name, text in request.form.items()
        if name.startswith(beginning)
    }
    changes = setting_fields.changes_of(request.form, before)
    queue = await _queue(runtime, request)
    if changes:
        await queues.update(runtime, queue, QueueRequest(changes), request.visitor.actor)
    home = page_addresses.home(request.where.options, request.where.repository.ref)
    return f"{page_addresses.queue(home, queue.branch)}/settings"


async def _queue(runtime: Runtime, request: PageRequest) -> QueueRef:
    branch = page_addresses.branch_of(request.names["branch"])
    return await queue_access.queue_in(runtime, request.where.repository, branch)


ACTIONS: Mapping[str, Action[PageRequest]] = {"save": Action(AccessLevel.ADMIN, save)}
