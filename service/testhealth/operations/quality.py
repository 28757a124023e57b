"""Say how well tests are judged in a repository, and what other settings would have said.

The stored evidence is replayed in a process of its own, one at a time, and the answer is kept until
the evidence or the settings change, or for ten minutes (docs/design/quality-on-history.md).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from cachetools import LRUCache

from service import globs
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Overloaded
from service.parser_process import Job, Limits
from service.parsers import Stopped
from service.runtime import Runtime
from service.testhealth.detector import figures, noise, score
from service.testhealth.detector.index import Earlier
from service.testhealth.detector.past import Past, Rules, Stored
from service.testhealth.detector.quality import Share
from service.testhealth.detector.repeats import Repeats
from service.testhealth.operations import records
from service.testhealth.operations.classify import Facts, stable_branches
from service.testhealth.operations.judge import KEPT_DAYS
from service.testhealth.operations.past_job import CarriedSets, replayed
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.reports.uploads import EvidenceUpload, UploadClass
from service.testhealth.settings import SettingValue, TestSettings
from service.testhealth.store import cases, past, quarantine, repeats, states, uploads
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.past import Known
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.vocabulary import Health, QuarantineForgives

JudgedPast: TypeAlias = Past
Bounds: TypeAlias = Share

UPLOADS_MAX = 6000
"""The newest uploads that are replayed; an answer says how many are left out."""

READ_AT_ONCE = 300
WAIT_S = 120
"""A page waits no longer; on a busy machine other work goes before a replay."""

LIMITS = Limits(computing_s=60, memory_bytes=1 << 30)
FRESH = timedelta(minutes=10)
"""An answer is used for so long although the evidence has changed; it says when it was made."""

ANSWERS_KEPT = 128
RETRY_AFTER_S = 60

REPLAYED = (
    *("quarantine_enabled", "auto_quarantine_enabled", "auto_quarantine_statuses"),
    *("sensitivity", "stable_branches", "quarantine_forgives"),
)
"""The settings that a replay follows; all others move no past status."""

NO_POSITIONS = (
    "Where commits of newly added branches are is not known, so failures between passes do not "
    "count there."
)
MASKS = "name_masks changes which tests are the same; that cannot be replayed."


@dataclass(frozen=True, slots=True)
class Preview:
    """The past under the present settings, and under others; `then` None: not asked.

    `now` None: no evidence is stored. `tests` are those that either names. `not_replayed` are the
    settings asked for that move no past status, `notes` say what else is left out. `left_out`:
    older uploads beyond UPLOADS_MAX.
    """

    at: datetime
    now: Past | None
    then: Past | None = None
    tests: Mapping[int, ListedCase] = field(default_factory=dict)
    not_replayed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def more(self) -> tuple[ListedCase, ...]:
        """Tests that would be flagged now, and are not."""
        return self._only(self.then, self.now)

    @property
    def fewer(self) -> tuple[ListedCase, ...]:
        """Tests that are flagged now, and would not be."""
        return self._only(self.now, self.then)

    def _only(self, one: Past | None, other: Past | None) -> tuple[ListedCase, ...]:
        if one is None or other is None:
            return ()
        nos = sorted({*one.flaky, *one.broken} - {*other.flaky, *other.broken})
        return tuple(self.tests[no] for no in nos if no in self.tests)


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer as of a revision of the evidence."""

    revision: int
    preview: Preview


class QualityCache:
    """The newest answers, by repository and settings."""

    def __init__(self) -> None:
        self.known: LRUCache[tuple[object, ...], _Kept] = LRUCache(ANSWERS_KEPT)


async def of_repository(runtime: Runtime, repository: RepositoryRecord) -> Preview:
    """Return what the present settings would have said. Raises Overloaded."""
    return await _answered(runtime, repository, {})


async def preview(
    runtime: Runtime, repository: RepositoryRecord, changes: Mapping[str, SettingValue]
) -> Preview:
    """Return that beside what changed settings would have said; changes nothing.

    Raises Overloaded.
    """
    found = await _answered(
        runtime, repository, {name: changes[name] for name in REPLAYED if name in changes}
    )
    notes = (*found.notes, *((MASKS,) if "name_masks" in changes else ()))
    others = tuple(name for name in changes if name not in REPLAYED)
    return replace(found, not_replayed=others, notes=notes)


async def _answered(
    runtime: Runtime, repository: RepositoryRecord, changes: Mapping[str, SettingValue]
) -> Preview:
    now = runtime.clock.now()
    known = runtime.store.caches.of(QualityCache).known
    asked = await runtime.store.read(_asked, runtime, repository, now, changes)
    key = (repository.id, asked.settings, asked.changed)
    kept = known.get(key)
    if kept and (kept.revision == asked.revision or now - kept.preview.at < FRESH):
        return kept.preview
    if runtime.replays.locked():
        raise Overloaded("Another replay is running.", retry_after_s=RETRY_AFTER_S)
    try:
        async with runtime.replays, asyncio.timeout(WAIT_S):
            found = await _computed(runtime, repository, asked)
    except TimeoutError:
        raise Overloaded(
            f"The replay took longer than {WAIT_S} seconds and was stopped.",
            retry_after_s=RETRY_AFTER_S,
        ) from None
    known[key] = _Kept(asked.revision, found)
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """A replay: the settings, changed ones if any, and the uploads, the newest first."""

    at: datetime
    revision: int
    settings: TestSettings
    changed: TestSettings | None
    rules: tuple[Rules, ...]
    uploads: tuple[Known, ...]
    left_out: int
    notes: tuple[str, ...]


def _asked(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    now: datetime,
    changes: Mapping[str, SettingValue],
) -> _Asked:
    here = repository.id
    settings = quarantine.settings_of(session, here)
    changed = replace(settings, **changes)  # type: ignore[arg-type]
    since = figures.beginning_of(figures.day_of(now) - KEPT_DAYS)
    stored = past.eligible(session, here, since)
    chosen = tuple(stored[:UPLOADS_MAX])
    kinds: Mapping[str, UploadClass] = {}
    if changed.stable_branches != settings.stable_branches:
        facts = Facts(session, runtime.links.of(QueueLinks), repository, changed)
        kinds = _recast(chosen, stable_branches(facts))
    rules = [_rules(settings, {})]
    if changed != settings:
        rules.append(_rules(changed, kinds))
    return _Asked(
        at=now,
        revision=cases.revision_of(session, here),
        settings=settings,
        changed=changed if changed != settings else None,
        rules=tuple(rules),
        uploads=chosen,
        left_out=len(stored) - len(chosen),
        notes=(NO_POSITIONS,) if UploadClass.STABLE in kinds.values() else (),
    )


def _rules(settings: TestSettings, kinds: Mapping[str, UploadClass]) -> Rules:
    is_on = settings.quarantine_enabled and settings.auto_quarantine_enabled
    excused = settings.auto_quarantine_statuses if is_on else ()
    return Rules(
        threshold=score.THRESHOLDS[settings.sensitivity.value],
        excused=frozenset(excused) - {Health.HEALTHY},
        known_texts=settings.quarantine_forgives is QuarantineForgives.KNOWN_FAILURES,
        kinds=kinds,
    )


def _recast(stored: Sequence[Known], patterns: Sequence[str]) -> dict[str, UploadClass]:
    """Return the uploads that have another class with these stable branches."""
    found: dict[str, UploadClass] = {}
    for each in stored:
        is_stable = globs.any_matches(patterns, each.branch)
        if each.kind is UploadClass.STABLE and not is_stable:
            found[each.id] = UploadClass.OTHER
        elif each.kind is UploadClass.OTHER and is_stable and each.may_be_stable:
            found[each.id] = UploadClass.STABLE
    return found


async def _computed(runtime: Runtime, repository: RepositoryRecord, asked: _Asked) -> Preview:
    stored, sets = await _read(runtime, repository, asked)
    job = Job(replayed, (stored, sets, asked.rules), LIMITS)
    try:
        pieces = await runtime.parsers.run(repository.ref, job, runtime.clock)
    except Stopped as stopped:
        raise Overloaded(
            f"The replay of the history of {repository.ref.slug} {stopped.why} and was stopped.",
            retry_after_s=RETRY_AFTER_S,
        ) from stopped
    answers = [each for each in pieces if isinstance(each, Past)]
    named = {no for each in answers for no in _named(each)}
    listed = await runtime.store.read(_described, runtime, repository, asked.at, sorted(named))
    return Preview(
        at=asked.at,
        now=answers[0] if answers else None,
        then=answers[1] if len(answers) > 1 else None,
        tests={case.no: case for case in listed},
        notes=asked.notes,
        left_out=asked.left_out,
    )


def _named(found: Past) -> set[int]:
    doubtful, missed = (each.no for each in found.doubtful), (each.no for each in found.missed)
    return {*doubtful, *missed, *found.flaky, *found.broken}


def _described(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    now: datetime,
    nos: Sequence[int],
) -> list[ListedCase]:
    context = records.context_of(session, runtime, repository, now)
    return records.described(session, context, nos)


async def _read(
    runtime: Runtime, repository: RepositoryRecord, asked: _Asked
) -> tuple[Stored, CarriedSets]:
    """Read the evidence, some uploads in each transaction: others have the database between."""
    ids = [each.id for each in asked.uploads]
    read: list[EvidenceUpload] = []
    texts: dict[str, Mapping[int, tuple[str, ...]]] = {}
    packed: dict[str, bytes] = {}
    for first in range(0, len(ids), READ_AT_ONCE):
        some = ids[first : first + READ_AT_ONCE]
        portion = await runtime.store.read(_portion, runtime, repository.id, some, set(packed))
        read += portion[0]
        texts |= portion[1]
        packed |= portion[2]
    oldest = min((each.day for each in read), default=0)
    earlier = await runtime.store.read(_earlier, repository.id, oldest)
    prs = {each.id: each.prs for each in asked.uploads if each.prs}
    ordered = tuple(sorted(read, key=lambda each: (each.at, each.digest)))
    # Those of tests that never failed in a round flag nothing.
    failing = sorted(await runtime.store.read(repeats.failing, repository.id))
    repeated: dict[int, tuple[tuple[str, Repeats], ...]] = {}
    for first in range(0, len(failing), READ_AT_ONCE):
        nos = failing[first : first + READ_AT_ONCE]
        repeated |= await runtime.store.read(repeats.repeats_of, repository.id, nos)
    return Stored(ordered, texts, prs, earlier, repeated), CarriedSets(packed)


def _portion(
    session: Tx, runtime: Runtime, repository_id: int, ids: Sequence[str], known: set[str]
) -> tuple[list[EvidenceUpload], Mapping[str, Mapping[int, tuple[str, ...]]], Mapping[str, bytes]]:
    sets = StoredSets(session, runtime.store.caches.of(OutcomeSets), repository_id)
    found = list(uploads.evidence(session, sets, ids))
    keys = {each.passed for each in found if each.passed is not None} - known
    return found, past.texts_of(session, ids), past.packed_sets(session, repository_id, keys)


def _earlier(session: Tx, repository_id: int, oldest: int) -> Earlier | None:
    """Return what is known of the days before the oldest upload, None if it is the first one."""
    measured = states.noise_of(session, repository_id)
    first = min(measured, default=None)
    if first is None or first >= oldest:
        return None
    until = oldest + noise.DAYS
    return Earlier(first, {day: level for day, level in measured.items() if day < until})
