"""Handlers of the endpoints about uploads (API.md 8.4): read, taken in, answered."""

from collections.abc import Mapping
from dataclasses import asdict

from service.http.call import Call
from service.http.rendering import Json
from service.testhealth.api.models import uploads as models
from service.testhealth.api.upload_form import Upload
from service.testhealth.operations import records, remove, take_in
from service.testhealth.operations.upload_values import AnsweredFailure, AnsweredFile, UploadAnswer


async def receive(call: Call, upload: Upload) -> Json:
    """`/flaky-tests/upload-test-results`."""
    asked = upload.asked
    found = await records.find_home(call.runtime, call.caller, asked.repo.ref, asked.org_url_slug)
    meta = upload.meta()
    home = found.repository
    return shown(await take_in.receive(call.runtime, call.caller, home, meta, upload.files))


async def get(call: Call, asked: models.GetUpload) -> Json:
    """`/flaky-tests/get-upload`."""
    found = await records.find_home(call.runtime, call.caller, asked.repo.ref, asked.org_url_slug)
    upload_id = asked.upload_id.lower()
    return shown(await take_in.upload_answer(call.runtime, found.repository, upload_id))


async def delete(call: Call, asked: models.DeleteUpload) -> Json:
    """`/flaky-tests/delete-upload`."""
    found = await records.find_home(call.runtime, call.caller, asked.repo.ref, asked.org_url_slug)
    upload_id = asked.upload_id.lower()
    await remove.remove(call.runtime, found.repository, upload_id, call.actor)
    return {"upload_id": upload_id, "deleted": True}


def shown(answer: UploadAnswer) -> Mapping[str, object]:
    """The answer of API.md 8.4."""
    return {
        "upload_id": answer.upload_id,
        "duplicate": answer.duplicate,
        "dry_run": answer.dry_run,
        "trusted": answer.trusted,
        "counts": asdict(answer.counts),
        "files": [_file(each) for each in answer.files],
        "failures": [_failure(each) for each in answer.failures],
        "failures_truncated": answer.failures_truncated,
        "quarantined_failures": answer.quarantined_failures,
        "unquarantined_failures": answer.unquarantined_failures,
        "verdict": asdict(answer.verdict),
        "not_excused_because": answer.not_excused_because,
        "warnings": answer.warnings,
        "html_url": answer.html_url,
    }


def _file(file: AnsweredFile) -> Json:
    return {
        "name": file.name,
        "format": None if file.format is None else file.format.value,
        "status": file.status.value,
        "tests": file.tests,
        "error": None if file.error is None else asdict(file.error),
    }


def _failure(failure: AnsweredFailure) -> Json:
    return {
        "test_id": failure.test_id,
        "name": failure.name,
        "parent": failure.parent,
        "classname": failure.classname,
        "file_path": failure.file,
        "variant": failure.variant,
        "status": failure.status.value,
        "quarantined": failure.quarantined,
        "quarantine_reason": failure.quarantine_reason,
        "summary": failure.summary,
    }
