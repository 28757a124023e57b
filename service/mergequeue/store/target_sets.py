"""Impacted targets, stored once for each content and named by a word everywhere else.

A set may hold hundreds of thousands of names, so rows, JSON and events hold its word: `ALL`,
or `set-` and the digest of its names. The names are written when a set is first
referred to, are read when the process lacks them, and equal sets share one object. A set that
nothing refers to is removed; the journal does not count, and reads such a set as unknown.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable
from weakref import WeakKeyDictionary, WeakValueDictionary

import orjson
from sqlalchemy import Connection, Select, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import codec
from service.mergequeue.engine.targets import ALL, Targets
from service.mergequeue.store.tables_queues import (
    EntryRow,
    ImpactedTargetsRow,
    MergeQueueRow,
    TargetSetRow,
)

ALL_WORD = "ALL"
PARTS = 256
"""Of one set, while its digest is made; another number is another digest."""
_WORD = re.compile(r"set-[0-9a-f]{64}")

sets = TargetSetRow.__table__
entries = EntryRow.__table__
queues = MergeQueueRow.__table__
impacted = ImpactedTargetsRow.__table__

# What this process knows: the word of a set, and the set of a word. Both forget a set with
# its last holder, and losing an entry costs work only.
_words: WeakKeyDictionary[frozenset[str], str] = WeakKeyDictionary()
_sets: WeakValueDictionary[str, frozenset[str]] = WeakValueDictionary()

_THESE = sets.c.word.in_(bindparam("words", expanding=True))
SELECT_NAMES = select(sets.c.word, sets.c.names).where(_THESE)
# What is referred to must not be removed before the reference is committed.
LOCK_THESE = select(sets.c.word).where(_THESE).with_for_update(read=True, key_share=True)
INSERT = upsert(sets).on_conflict_do_nothing()


def word_of(targets: Targets) -> str:
    """Return the digest of these targets for rows and JSON; reads every name the first time."""
    if targets.everything:
        return ALL_WORD
    known = _words.get(targets.names)
    if known is None:
        known = _words[targets.names] = f"set-{_digest(targets.names)}"
    _sets.setdefault(known, targets.names)
    return known


def shared(targets: Targets) -> Targets:
    """Return the one shared object for these targets in this process."""
    return of_word(word_of(targets)) or targets


def _digest(names: frozenset[str]) -> str:
    """Return a digest that is equal for the same names in any order.

    They are sorted in parts that their content decides: one sort of a million names would
    keep every other thread of the process waiting.
    """
    parts: list[list[str]] = [[] for _ in range(PARTS)]
    for name in names:
        parts[zlib.crc32(name.encode()) % PARTS].append(name)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(orjson.dumps(sorted(part)))
    return digest.hexdigest()


def of_word(word: str) -> Targets | None:
    """Return the targets again, None (unknown) for a set that is not at hand; see `at_hand`."""
    if word == ALL_WORD:
        return ALL
    names = _sets.get(word)
    return None if names is None else Targets(names)


def at_hand(session: Connection, texts: Iterable[str | None]) -> tuple[frozenset[str], ...]:
    """Read the sets named in these words or JSON texts into memory, for `of_word`.

    The caller keeps the result until everything is restored.
    """
    words = _words_in(texts)
    held = {word: names for word in words if (names := _sets.get(word)) is not None}
    lacking = words - held.keys()
    if lacking:
        for row in session.execute(SELECT_NAMES, {"words": sorted(lacking)}):
            names = _sets.setdefault(row.word, frozenset(orjson.loads(row.names)))
            _words.setdefault(names, row.word)
            held[row.word] = names
    return tuple(held.values())


def keep(session: Connection, referred_to: Iterable[Targets | None]) -> None:
    """Insert the names of sets that are not stored yet; needed before a row refers to them."""
    names = {
        word_of(each): each.names
        for each in referred_to
        if each is not None and not each.everything
    }
    if not names:
        return
    there = set(session.execute(LOCK_THESE, {"words": sorted(names)}).scalars())
    for word in names.keys() - there:
        text = orjson.dumps(list(names[word])).decode()
        session.execute(INSERT, {"word": word, "names": text})


def forget_unused(session: Connection, limit: int) -> int:
    """Delete at most `limit` sets that have no reference, and return how many."""
    unused = _unused(session).order_by(sets.c.word).limit(limit).with_for_update(skip_locked=True)
    found = session.execute(unused).scalars().all()
    if not found:
        return 0
    # Checked again under the lock: a new reference waits for it, and stores the set again.
    still = _unused(session).where(sets.c.word.in_(found))
    return session.execute(delete(sets).where(sets.c.word.in_(still))).rowcount


def _unused(session: Connection) -> Select[tuple[str]]:
    texts = session.execute(select(queues.c.landed, queues.c.kept_move)).all()
    in_queues = _words_in(text for row in texts for text in row)
    return select(sets.c.word).where(
        ~select(entries.c.no).where(entries.c.targets == sets.c.word).exists(),
        ~select(entries.c.no).where(entries.c.wide == sets.c.word).exists(),
        ~select(impacted.c.head).where(impacted.c.targets == sets.c.word).exists(),
        sets.c.word.not_in(sorted(in_queues)),
    )


def _words_in(texts: Iterable[str | None]) -> set[str]:
    return {word for text in texts if text is not None for word in _WORD.findall(text)}


codec.store_as_word(Targets, word_of, of_word)
