"""Uploads that have been taken in: rows as ingestion leaves them, written by the store's functions.

What a test did is a word of letters, an attempt each: `p` passed, `f` failed, `s` was skipped;
`fp` failed and passed when tried again.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from service.database.database import Tx
from service.testhealth.reports import identity
from service.testhealth.reports.identity import CaseKey, RepositoryKey
from service.testhealth.reports.results import Outcome
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import bitmaps, day_counts, days, sets, states, uploads
from service.testhealth.store import cases as test_cases
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.cases import Place
from service.testhealth.store.days import OpenDay
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.states import DETECTOR, CaseState, StateChange
from service.testhealth.store.uploads import Upload
from service.vocabulary import Health

LETTERS = {"p": Outcome.PASSED, "f": Outcome.FAILED, "s": Outcome.SKIPPED}
HEADLINE = "AssertionError: 10.0 != 10.01"


@dataclass(frozen=True)
class Ran:
    """An upload: name of each test → what it did; `headlines` say how the failing ones failed.

    `facts` are fields of the stored upload that are not as usual.
    """

    at: datetime
    tests: Mapping[str, str]
    prs: tuple[int, ...] = ()
    is_trusted: bool = True
    headlines: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ledger:
    """The tests of one repository."""

    place: Place
    key: RepositoryKey
    now: datetime

    def named(self, key: RepositoryKey) -> "Ledger":
        """The same, when organization or repository have another name."""
        return replace(self, key=key)

    def id_of(self, name: str, variant: str = "") -> str:
        """The id of the test of this name."""
        return str(identity.id_of(self.key, a_key(name), variant))

    def take_in(self, session: Tx, ran: Ran) -> Upload:
        """What ingestion does with an upload, but for judging; the upload as it is stored."""
        nos = self._numbers(session, ran)
        by_name = {name: nos[self.id_of(name, ran.variant)] for name in ran.tests}
        once = {name: word for name, word in ran.tests.items() if word in ("p", "s")}
        kept = {
            word: sets.put_set(
                session,
                self.place,
                bitmaps.packed_set(by_name[name] for name, did in once.items() if did == word),
                ran.at,
            )
            for word in ("p", "s")
        }
        upload = an_upload(ran, kept["p"], kept["s"])
        attempts = [
            attempt
            for name in ran.tests.keys() - once.keys()
            for attempt in self._attempts(upload, ran, by_name[name], name)
        ]
        uploads.record(session, self.place, upload, attempts)
        failed = [each for each in attempts if each.failure is not None]
        if ran.is_trusted:
            days.open_day(session, self.place, ran.at, self.now)
            test_attempts.note_failures(session, self.place, failed)
        hit = [(each.no, pr) for each in failed for pr in ran.prs]
        test_attempts.note_impact(session, self.place, hit, ran.at, self.now)
        here = self.place.repository_id
        if ran.is_trusted:
            test_cases.note_failed(session, here, {each.no for each in failed}, ran.at)
        test_cases.note_evidence(session, here, ran.at)
        return upload

    def open_days(self, session: Tx) -> list[OpenDay]:
        """The days of the repository that are open, over or not."""
        found = days.due(session, self.now + timedelta(days=10_000))
        return [day for day in found if day.place == self.place]

    def count(self, session: Tx, *which: int, parts: int = 1000) -> None:
        """Count open days, all or these, writing at most so many parts of each."""
        for day in self.open_days(session):
            if which and day.day not in which:
                continue
            sums = day_counts.added_up(day_counts.read(session, OutcomeSets(), day))
            todo = list(sums.parts())
            for part in todo[:parts]:
                assert day_counts.write(session, sums, part)
            if parts >= len(todo):
                days.close(session, day, sums.failed)

    def judge(
        self, session: Tx, name: str, value: Health, since: datetime, reason: str = "Because."
    ) -> None:
        """What judging leaves behind when the detector finds this."""
        (no,) = test_cases.by_ids(session, self.place.repository_id, [self.id_of(name)]).values()
        before = states.state(session, self.place.repository_id, no)
        state = CaseState(no, value, reason, since)
        states.put(session, self.place, state)
        change = StateChange(
            no=no,
            at=since,
            written_at=self.now,
            previous=Health.HEALTHY if before is None else before.value,
            value=value,
            reason=reason,
            actor_kind=DETECTOR.kind,
            actor_login=DETECTOR.login,
        )
        states.note(session, self.place, change)

    def _numbers(self, session: Tx, ran: Ran) -> dict[str, int]:
        shared = test_cases.name_repository(session, self.place, self.key)
        ids = {self.id_of(name, ran.variant): name for name in ran.tests}
        here = self.place.repository_id
        known = test_cases.by_ids(session, here, ids)
        new = [each for each in ids if each not in known]
        first = test_cases.take_numbers(session, here, len(new)) if new else 0
        numbers = {each: first + n for n, each in enumerate(new)}
        seen = (shared.names.index(self.key), ran.variant, ran.at)
        for each, no in numbers.items():
            name = ids[each]
            key = a_key(name)
            names = (key.name, key.classname, key.parent, key.file)
            test_cases.add(session, self.place, seen, [(no, each, *names, None)])
            values = {
                "is_known": ran.is_trusted,
                "last_failed_at": ran.at if "f" in ran.tests[name] else None,
                "ever_passed": "p" in ran.tests[name],
            }
            test_cases.change(session, here, [no], owners='["@octo/web"]', **values)
        return known | numbers

    def _attempts(self, upload: Upload, ran: Ran, no: int, name: str) -> list[StoredAttempt]:
        headline = ran.headlines.get(name, HEADLINE)
        return [
            StoredAttempt(
                upload=upload.id,
                no=no,
                n=n,
                ran_at=ran.at,
                outcome=LETTERS[letter],
                failure=f"key of {headline}" if letter == "f" else None,
                headline=headline if letter == "f" else None,
                is_eligible=ran.is_trusted,
            )
            for n, letter in enumerate(ran.tests[name], 1)
        ]


CLASS = "TestCart"


def a_key(name: str) -> CaseKey:
    """What reports say of the tests here; before `::` stands a file that is another than usual.

    A case with the name of their class is the whole module, as of a file that did not load.
    """
    file, separator, plain = name.rpartition("::")
    place = file if separator else "tests/ui/test_cart.py"
    return CaseKey(place, "" if plain == CLASS else CLASS, "ui", plain)


def an_upload(ran: Ran, passed: str | None, skipped: str | None) -> Upload:
    """The upload itself; every one is its own content."""
    fresh = str(uuid.uuid4())
    upload = Upload(
        id=fresh,
        digest=fresh,
        kind="pr" if ran.is_trusted else "untrusted",
        code_id=f"run:{fresh}",
        sha="a" * 40,
        job="unit",
        ran_at=ran.at,
        received_at=ran.at,
        prs=ran.prs,
        is_eligible=ran.is_trusted,
        passed=passed,
        skipped=skipped,
    )
    return replace(upload, **ran.facts)
