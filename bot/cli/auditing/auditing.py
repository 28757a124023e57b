"""Read database, git and evidence for an audit; beside a running service, or without one."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot import settings
from bot.cli import destination, options
from bot.cli.administration import administer
from bot.cli.auditing import evidence, history
from bot.cli.exits import Exit, Failed
from bot.cli.verifying.repository import Repository
from bot.github.gitbuild import mirror
from service.accounts.store import signing_keys
from service.accounts.store.signing_keys import SigningKey
from service.database.database import Tx
from service.mergequeue.auditing.audit import audit
from service.mergequeue.auditing.findings import Audit
from service.mergequeue.auditing.records import QueueRows, Statement
from service.mergequeue.landing_records import StoredLanding
from service.mergequeue.store import auditing as stored
from service.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Wanted:
    """The selection of what is audited, as the options name it."""

    queue: str | None
    since: str | None
    checkout: Path | None


Read = tuple[QueueRows, list[StoredLanding], list[StoredLanding]]
"""Rows of a queue, its signed evidence, and that which waits to be signed."""


def audits(wanted: Wanted, database_url: str | None, data_dir: Path | None) -> list[Audit]:
    """Return the audit of each queue. Raises Failed(USAGE, NOT_FOUND)."""
    chosen = settings.read(database_url=database_url, data_dir=data_dir)

    async def act(runtime: Runtime, _host: str) -> list[Audit]:
        since = _moment(wanted.since, runtime.clock.now())
        keys, every = await runtime.store.read(_read)
        found = _of_clone(wanted.checkout, _of_queue(wanted.queue, every))
        mirrors = chosen.data_dir.absolute() / "mirrors"
        return await asyncio.to_thread(_audits, found, keys, (wanted.checkout, mirrors), since)

    return administer(act, database_url, data_dir)


def _read(session: Tx) -> tuple[tuple[SigningKey, ...], list[Read]]:
    """Read everything in one snapshot, so that rows agree with each other."""
    every = stored.rows_of_queues(session)
    return (
        signing_keys.all_keys(session),
        [(rows, *stored.evidence_of(session, rows.queue.id)) for rows in every],
    )


def _audits(
    every: list[Read],
    keys: tuple[SigningKey, ...],
    places: tuple[Path | None, Path],
    since: datetime | None,
) -> list[Audit]:
    made = []
    for rows, signed, waiting in every:
        statements: list[Statement] = evidence.read(signed, waiting, keys)
        repository = _repository_of(rows, *places)
        found = None if repository is None else history.read(repository, rows)
        made.append(audit(rows, found, statements, since))
    return made


def _repository_of(rows: QueueRows, given: Path | None, mirrors: Path) -> Repository | None:
    """Return the repository to read: the one that was named, else the mirror if there is one."""
    if given is not None:
        return Repository(given)
    folder = mirrors / rows.queue.repo.host
    names = (f"{rows.provider_id}{end}" for end in (mirror.FULL, mirror.BLOBLESS))
    return next((Repository(folder / name) for name in names if (folder / name).is_dir()), None)


def _of_queue(name: str | None, every: list[Read]) -> list[Read]:
    """Return the rows of the queue that is named, in any spelling; of all queues without a name."""
    if name is None:
        return every
    repo, at, branch = name.rpartition("@")
    if not at or not branch:
        raise Failed(Exit.USAGE, f"{name!r} is no queue", "Write it as OWNER/NAME@BRANCH")
    ref = destination.required_repository(repo)
    key = (ref.slug.lower(), branch)
    found = [
        each for each in every if (each[0].queue.repo.slug.lower(), each[0].queue.branch) == key
    ]
    if not found:
        raise Failed(Exit.NOT_FOUND, f"{name} has no queue here", "`headgate queue list` names all")
    return found


def _of_clone(clone: Path | None, every: list[Read]) -> list[Read]:
    """Return what may be compared with this clone: the queues of its repository alone."""
    if clone is None:
        return every
    origin = destination.parse_remote(Repository(clone).remote())
    slug = None if origin is None else origin.slug.lower()
    found = [each for each in every if each[0].queue.repo.slug.lower() == slug] or every
    if len({each[0].queue.repository_id for each in found}) > 1:
        what = f"{clone} may be a clone of several repositories with a queue"
        raise Failed(Exit.USAGE, what, "Name one by --queue")
    return found


def _moment(text: str | None, now: datetime) -> datetime | None:
    """Return the beginning of what is shown: a day, or so long ago. Raises Failed(USAGE)."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return now - timedelta(seconds=options.seconds(text))
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
