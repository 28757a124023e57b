"""Handlers of the endpoints about uploads: read, taken in, answered."""

from service.http.callers import Call
from service.http.rates import RateClass
from service.http.route import VERSIONED, Posted, Route, read, write
from service.testhealth.api import upload_form
from service.testhealth.api.models import uploads as models
from service.testhealth.api.models.answers.uploads import FileShown, UploadDeleted, UploadTaken
from service.testhealth.api.upload_form import Upload
from service.testhealth.operations import ingest, records, remove
from service.testhealth.operations.upload_values import UploadAnswer
from service.vocabulary import Role


async def receive(call: Call, upload: Upload) -> UploadTaken:
    """Take test reports in, and say which failures count."""
    asked = upload.asked
    addresses = await records.find_addresses(
        call.runtime, call.caller, asked.repo.ref, asked.org_url_slug
    )
    meta = upload.meta()
    home = addresses.repository
    return _taken(await ingest.ingest_files(call.runtime, call.caller, home, meta, upload.files))


def _taken(answer: UploadAnswer) -> UploadTaken:
    files = [FileShown.of(each, error=each.fault) for each in answer.files]
    return UploadTaken.of(answer, files=files)


@read(
    "flaky-tests/get-upload",
    models.GetUpload,
    UploadTaken,
    "organization_not_found",
    "upload_not_found",
    role=Role.CI,
)
async def get(call: Call, asked: models.GetUpload) -> UploadTaken:
    """Return the answer to an upload again."""
    addresses = await records.find_addresses(
        call.runtime, call.caller, asked.repo.ref, asked.org_url_slug
    )
    upload_id = asked.upload_id.lower()
    return _taken(await ingest.upload_answer(call.runtime, addresses.repository, upload_id))


@write(
    "flaky-tests/delete-upload",
    Role.ADMIN,
    models.DeleteUpload,
    UploadDeleted,
    "organization_not_found",
    "upload_not_found",
)
async def delete(call: Call, asked: models.DeleteUpload) -> UploadDeleted:
    """Delete an upload; its tests are judged without it."""
    addresses = await records.find_addresses(
        call.runtime, call.caller, asked.repo.ref, asked.org_url_slug
    )
    upload_id = asked.upload_id.lower()
    await remove.remove(call.runtime, addresses.repository, upload_id, call.actor)
    return UploadDeleted(upload_id=upload_id, deleted=True)


UPLOAD_ROUTES: tuple[Route, ...] = (
    Posted(
        f"{VERSIONED}/flaky-tests/upload-test-results",
        Role.CI,
        models.UploadTestResults,
        receive,
        writes=True,
        rate=RateClass.UPLOAD,
        intake=upload_form.FORM,
        takes_oidc=True,
    ).answering(
        UploadTaken,
        "organization_not_found",
        "bad_request",
        "no_results",
        "limit_reached",
        "conflicting_fields",
    ),
    get,
    delete,
)
"""The endpoints about uploads, in the order of the document."""
