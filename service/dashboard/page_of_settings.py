"""The settings of a queue: each with its source, a form, and a replay with other values."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from service.accounts import page_addresses
from service.dashboard import setting_fields
from service.dashboard.charts import duration
from service.dashboard.requests import Action, PageRequest
from service.dashboard.setting_fields import FIELDS, GROUPS, SettingField, field_of, text_of
from service.errors import Malformed
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.operations import file_checks, queue_access, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.wording.file_checks import Replayed
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import QueueRef

TRIED = (
    *("concurrency", "bisection_concurrency", "batch", "batching_min_size"),
    *("batching_max_wait_time_minutes", "confirm_failures", "can_optimistically_merge"),
)
"""The settings of the form that replays; the address takes every setting."""

MINUS = "\N{MINUS SIGN}"
REPLAY_NEEDS = AccessLevel.WRITE
REPLAY_S = 60
NO_ACCESS = "A replay needs write access."
BUSY = "Another replay is running. Try again in a minute."
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
    """A replay with other values: `tried` has those, `rows` its figures, `trouble` why none."""

    given: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[SettingField, ...] = ()
    title: str = ""
    submissions: int = 0
    rows: tuple[Row, ...] = ()
    trouble: str = ""

    @property
    def can_be_saved(self) -> bool:
        """Whether no file sets one of them."""
        return not any(each.file for each in self.tried)

    @property
    def is_better(self) -> bool:
        """Whether no figure is worse."""
        return all(row.look != "worse" for row in self.rows)


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """All settings by group, and a replay if the address asks for one."""

    value: MergeQueue
    groups: Mapping[str, tuple[SettingField, ...]]
    tries: tuple[SettingField, ...]
    trial: Trial
    before: str = setting_fields.BEFORE
    needs: AccessLevel = REPLAY_NEEDS


async def read(runtime: Runtime, request: PageRequest) -> SettingsPage:
    """Return the page. Raises NotFound(queue_not_found)."""
    queue = await _queue(runtime, request)
    value = await turn.value(runtime, queue.id)
    trial = Trial()
    if request.query and not request.form:
        trial = await _tried(runtime, queue, value, request)
    groups = {
        title: tuple(field_of(value, name) for name in names) for title, names in GROUPS.items()
    }
    return SettingsPage(value, groups, tuple(field_of(value, name) for name in TRIED), trial)


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
        return Trial(given, trouble=wrong.detail)
    tried = tuple(field_of(value, name) for name in changes)
    if not request.visitor.may(REPLAY_NEEDS):
        return Trial(given, tried, trouble=NO_ACCESS)
    effect = SAME if not changes else await _effect(runtime, queue, value, changes)
    if isinstance(effect, str):
        return Trial(given, tried, trouble=effect)
    return Trial(given, tried, title_of(changes, effect), effect.submissions, rows_of(effect))


async def _effect(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, changes: Mapping[str, ConfigValue]
) -> Replayed | str:
    """Return the figures, or why there are none; replays of pages do not wait for each other."""
    if runtime.replays.locked():
        return BUSY
    try:
        async with asyncio.timeout(REPLAY_S):
            return await file_checks.effect(runtime, queue, value, changes)
    except TimeoutError:
        return SLOW


def title_of(changes: Mapping[str, ConfigValue], found: Replayed) -> str:
    """Return `Concurrency 8: P95 41 min → 29 min, CI +6 %`."""
    name, value = next(iter(changes.items()))
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    text = " ".join(text_of(name, value).split())[:40] or "none"
    p95 = " → ".join(_time(side["time_to_merge_p95_s"]) for side in (found.before, found.after))
    ci = _percent(found.before["ci_minutes"], found.after["ci_minutes"])
    return f"{setting_fields.label_of(name)} {text}{more}: P95 {p95}, CI {ci}"


def rows_of(found: Replayed) -> tuple[Row, ...]:
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
