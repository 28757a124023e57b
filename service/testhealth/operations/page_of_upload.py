"""One upload as its page shows it: what came, how it was read, which tests failed in it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.operations import answers, failure_texts, notices, records
from service.testhealth.operations.notices import QuarantineLarge
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.operations.records import RepositoryAddresses
from service.testhealth.operations.upload_values import UploadAnswer
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases, listings, states, uploads
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.uploads import Upload
from service.vocabulary import Health


class Shift(NamedTuple):
    """A test whose status an upload changed."""

    case: ListedCase
    before: Health
    after: Health


@dataclass(frozen=True, slots=True)
class PageOfUpload:
    """Everything on an upload's page; `answer` is the one that its sender got, as it is now.

    `new_texts` are ids of tests that failed here as they had not failed in the 30 days before,
    `shifts` the tests whose status it changed, by name.
    """

    repository: RepositoryRecord
    upload: Upload
    answer: UploadAnswer
    new_texts: frozenset[str]
    shifts: tuple[Shift, ...]
    large: QuarantineLarge | None


UPLOADS_MAX = 100
"""Uploads on the page that lists them."""


async def newest(runtime: Runtime, repository: RepositoryRecord) -> tuple[Upload, ...]:
    """Return the last 100 uploads of a repository, the newest first, refused ones too."""
    return await runtime.store.read(uploads.newest, repository.id, UPLOADS_MAX)


async def changes(runtime: Runtime, repository: RepositoryRecord) -> str:
    """Return a text that changes with what `newest` returns."""

    def find(session: Tx) -> str:
        revision = cases.revision_of(session, repository.id)
        return f"{revision}-{uploads.newest_id(session, repository.id)}"

    return await runtime.store.read(find)


async def read(runtime: Runtime, where: RepositoryAddresses, upload_id: str) -> PageOfUpload:
    """The page of an upload of this repository, a refused one too.

    Raises NotFound(upload_not_found).
    """
    now, repository = runtime.clock.now(), where.repository

    def find(session: Tx) -> PageOfUpload:
        upload = records.find_upload(session, repository, upload_id)
        context = records.context_of(session, runtime, repository, now)
        attempts = test_attempts.attempts_of(session, upload_id)
        return PageOfUpload(
            repository=repository,
            upload=upload,
            answer=answers.answer_again(session, runtime, context, upload, attempts),
            new_texts=_new_texts(session, repository.id, upload, failure_texts.failed(attempts)),
            shifts=_shifts(session, repository.id, upload),
            large=notices.quarantine_large(session, context),
        )

    page = await runtime.store.read(find)
    check = runtime.links.of(QueueLinks).check_answer
    return replace(page, answer=await check(runtime, repository, page.answer))


def _new_texts(
    session: Tx, repository_id: int, upload: Upload, failed: failure_texts.Failed
) -> frozenset[str]:
    nos = sorted(failed)[: answers.FAILURES_MAX]
    keys_by_test = failure_texts.known_keys(session, repository_id, nos, upload.ran_at, upload.prs)
    new = [no for no in nos if failure_texts.is_new(failed[no], keys_by_test.get(no, frozenset()))]
    return frozenset(case.id for case in listings.listed_cases(session, repository_id, new))


def _shifts(session: Tx, repository_id: int, upload: Upload) -> tuple[Shift, ...]:
    """Return what judging the upload wrote, in the transaction and at the time of its receipt."""
    changes = states.written_at(session, repository_id, upload.received_at)
    listed = listings.listed_cases(session, repository_id, sorted(changes))
    shifts = [Shift(case, *changes[case.no]) for case in listed]
    return tuple(sorted(shifts, key=lambda each: (each.case.name, each.case.id)))
