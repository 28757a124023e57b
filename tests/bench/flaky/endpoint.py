"""A world sent to the public endpoint, shuffled and with repeats: it ends in the same states.

What uploads say of tests when they come one by one, stored and judged, is held against what they
say all at once in memory (docs/design/detector.md 13).
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Self
from xml.sax.saxutils import quoteattr

import aiohttp
import numpy as np

from bot import telemetry
from service.testhealth.reports import identity
from service.testhealth.reports.identity import CaseKey, RepositoryKey
from service.vocabulary import Health, Role
from tests.bench import door
from tests.bench.door import REPO
from tests.bench.flaky import uploads, worlds
from tests.bench.flaky.ledger import Ledger, Upload
from tests.bench.flaky.worlds import Law, Shape

SHAPE = Shape("A", tests=200, days=10)
LAW: Law = "heavy-tailed"
REPEATED = 0.1
"""Share of the uploads that are sent twice."""

SENDERS = 4
KEY = RepositoryKey("octo", f"{REPO.host}/{REPO.slug}")
FOLDER = "/v1/flaky-tests"

Status = tuple[str, str, str]
"""Value, reason, and since when."""


@dataclass(frozen=True)
class Sent:
    """What came of a world: how many uploads, how many of them twice, and who is otherwise.

    `unhealthy` of its tests are flaky or broken in the end; `differing` has the statuses that
    are not those of the ledger, by test: (there, in the ledger).
    """

    uploads: int
    repeats: int
    duplicates: int
    seconds: float
    unhealthy: int
    differing: Mapping[int, tuple[Status, Status]]


def rows_of(found: Sent) -> Iterator[dict[str, object]]:
    """The lines of `make bench ONLY=flaky`."""
    about: dict[str, object] = {"scenario": "A by the endpoint", "rates": LAW}
    yield {**about, "figure": "uploads", "value": f"{found.uploads}"}
    yield {**about, "figure": "uploads a second", "value": f"{found.uploads / found.seconds:.3g}"}
    yield {**about, "figure": "unhealthy tests", "value": f"{found.unhealthy}"}
    lost = found.repeats - found.duplicates
    for figure, value in (
        ("other states than judged at once", len(found.differing)),
        ("repeats that counted twice", lost),
    ):
        yield {
            **{**about, "figure": figure, "value": f"{value}"},
            **{"gate": "≤ 0", "met": "yes" if value <= 0 else "NO"},
        }


def sent(shape: Shape = SHAPE, law: Law = LAW, seed: int = 1) -> Sent:
    """Draw a world and send all of it, to a service of its own in this process."""
    reported = recent(uploads.reported(worlds.drawn(shape, law, seed)), datetime.now(UTC))
    with TemporaryDirectory() as folder:
        return asyncio.run(_played(Path(folder), shape, reported, seed))


def recent(reported: Sequence[Upload], now: datetime) -> list[Upload]:
    """The same uploads some days later, so that the last ones ran yesterday.

    By whole days, for health hangs on the days of UTC; times to the millisecond and commits as
    the endpoint takes them, of which no provider tells where they are on the branch.
    """
    newest = max(each.at for each in reported).toordinal()
    shift = timedelta(days=now.toordinal() - 1 - newest)
    return [
        replace(
            each,
            at=(each.at + shift).replace(microsecond=each.at.microsecond // 1000 * 1000),
            code=f"sha:{each.code.partition(':')[2]:0>40}",
            position=None,
        )
        for each in reported
    ]


async def _played(folder: Path, shape: Shape, reported: Sequence[Upload], seed: int) -> Sent:
    chance = np.random.default_rng([seed, 4])
    again = [each for each in reported if chance.random() < REPEATED]
    whole = [*reported, *again]
    arriving = [whole[place] for place in chance.permutation(len(whole))]
    async with Client(folder) as client:
        begin = perf_counter()
        duplicates = await client.send_all(arriving)
        seconds = perf_counter() - begin
        found = {no: await client.status(no) for no in range(shape.tests)}
    wanted = expected(Ledger(reported))
    differing = {
        no: (said, wanted.get(no, said))
        for no, said in found.items()
        if (said != wanted[no] if no in wanted else said[0] != Health.HEALTHY)
    }
    unhealthy = sum(1 for value, _, _ in found.values() if value != Health.HEALTHY)
    return Sent(len(arriving), len(again), duplicates, seconds, unhealthy, differing)


def expected(ledger: Ledger) -> dict[int, Status]:
    """What the uploads say together of each test that ever failed."""
    found = {}
    for no in ledger.failed:
        judged = ledger.judge(no)
        found[no] = (judged.value.value, judged.reason, moment(judged.since))
    return found


def moment(at: datetime) -> str:
    """As answers tell times."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Client:
    """A service over a database in a folder, and CI that talks to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> Self:
        self._runtime = await door.runtime_at(f"sqlite:///{self._folder}/bench.db")
        telemetry.start("json", "error", self._runtime.clock)
        await self._runtime.store.run(door.met)
        self._token = await door.token_of(self._runtime, REPO, Role.QUEUE)
        self._reader = await door.reader_of(self._runtime, REPO)
        self._runner, port = await door.opened(door.application(self._runtime))
        self._session = aiohttp.ClientSession(f"http://127.0.0.1:{port}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._runner.cleanup()
        await self._runtime.store.close()

    async def send_all(self, arriving: Sequence[Upload]) -> int:
        """Send uploads, some at the same time; how many of them were known."""
        left = iter(arriving)

        async def send_some() -> int:
            return sum([await self.send(each) for each in left])

        return sum(await asyncio.gather(*(send_some() for _ in range(SENDERS))))

    async def send(self, upload: Upload) -> bool:
        """Send one upload; whether it was known."""
        about = {
            **_asking(),
            "sha": upload.code.partition(":")[2],
            "branch": upload.branch,
            "pr_number": upload.pr,
            "run_id": upload.run,
            "run_attempt": upload.run_attempt,
            "job": upload.job,
            "ran_at": moment(upload.at),
        }
        form = aiohttp.FormData()
        form.add_field("metadata", json.dumps(about), content_type="application/json")
        form.add_field("file", report(upload), filename="junit.xml")
        told = await self._asked("upload-test-results", self._token, data=form)
        return bool(told["duplicate"])

    async def status(self, no: int) -> Status:
        """How a test is; as one that is healthy if nobody ran it."""
        asked = {**_asking(), "test_id": str(identity.id_of(KEY, _key(no)))}
        told = await self._asked("get-test-details", self._reader, json=asked)
        said = told["test"]["status"]
        return said["value"], said["reason"], said["timestamp"]

    async def _asked(self, name: str, token: str, **sent: Any) -> dict[str, Any]:
        headers = {"x-api-token": token}
        async with self._session.post(f"{FOLDER}/{name}", headers=headers, **sent) as answer:
            said: dict[str, Any] = await answer.json(content_type=None)
            if answer.status != 200:
                raise RuntimeError(f"{name} was answered {answer.status}: {said}")
            return said


def report(upload: Upload) -> bytes:
    """A JUnit report; a test that was tried again stands there once for each attempt."""
    numbers = {no for no in range(upload.passed.bit_length()) if upload.passed >> no & 1}
    cases = "".join(
        _case(no, letter)
        for no in sorted(numbers.union(upload.attempts))
        for letter in upload.letters(no)
    )
    return f'<testsuite name="ui">{cases}</testsuite>'.encode()


def _case(no: int, letter: str) -> str:
    key = _key(no)
    names = (("name", key.name), ("classname", key.classname), ("file", key.file))
    told = " ".join(f"{name}={quoteattr(value)}" for name, value in names)
    failure = '<failure message="10.0 != 10.01"/>' if letter == "F" else ""
    return f"<testcase {told}>{failure}</testcase>"


def _key(no: int) -> CaseKey:
    return CaseKey(f"tests/test_{no}.py", "World", "ui", f"test_{no}")


def _asking() -> dict[str, Any]:
    repo = {"host": REPO.host, "owner": REPO.owner, "name": REPO.name}
    return {"repo": repo, "org_url_slug": REPO.owner}
