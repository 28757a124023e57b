"""Uploads of test reports over HTTP: what is taken, what is refused, what is answered (8.4)."""

import gzip
import io
import json
import uuid

import pytest

NAME = "flaky-tests/upload-test-results"
SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
GOOD = b"""<testsuites><testsuite name="ui">
<testcase name="test_total" classname="TestCart" file="tests/test_cart.py" time="0.2"/>
<testcase name="test_skipped" classname="TestCart" file="tests/test_cart.py"><skipped/></testcase>
</testsuite></testsuites>"""
FAILING = GOOD.replace(b'time="0.2"/>', b'time="0.2"><failure message="1 != 2"/></testcase>')
DTD = b'<?xml version="1.0"?>\n<!DOCTYPE x><testsuite><testcase name="a"/></testsuite>'


def about(client, **more):
    """The metadata of an upload of a run of its own."""
    it = client.instance
    repo = {"host": it.host, "owner": it.owner, "name": it.repo}
    said = {"repo": repo, "org_url_slug": it.owner, "sha": SHA, "run_id": str(uuid.uuid4())}
    return said | more


KIND = "multipart/form-data; boundary=between"


def a_form(metadata, *files, **parts):
    """Metadata, the files as (name, bytes), then further parts, as bytes."""
    said = metadata if isinstance(metadata, str) else json.dumps(metadata)
    named = [('name="metadata"', said.encode())]
    named += [(f'name="file"; filename="{name}"', content) for name, content in files]
    named += [(f'name="{name}"', content.encode()) for name, content in parts.items()]
    return b"".join(
        [
            *(
                b"--between\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n"
                % (name.encode(), content)
                for name, content in named
            ),
            b"--between--\r\n",
        ]
    )


async def send(client, metadata, *files, token=None, **parts):
    """An upload."""
    return await send_bytes(client, a_form(metadata, *files, **parts), token)


async def send_bytes(client, content, token=None, **headers):
    """As `send`, as it goes over the wire; a stream, so that no size is too much for a test."""
    kind = {"Content-Type": KIND} | headers
    return await client.ask("POST", f"/v1/{NAME}", token, data=io.BytesIO(content), headers=kind)


async def taken(client, metadata, *files, **more):
    """As `send`; what was answered, which must be a success."""
    answer = await send(client, metadata, *files, **more)
    assert answer.status == 200, answer.json
    return answer.json


async def test_an_upload_is_answered_and_found_again(client, instance):
    metadata = about(client, branch="main", job="unit")
    said = await taken(client, metadata, ("junit.xml", GOOD), token=instance.ci_token or None)
    assert list(said) == [
        *("upload_id", "duplicate", "dry_run", "trusted", "counts", "files", "failures"),
        *("failures_truncated", "quarantined_failures", "unquarantined_failures", "verdict"),
        *("not_excused_because", "runner_ends", "warnings", "html_url"),
    ]
    assert said["counts"] == {
        **{"files": 1, "tests": 2, "distinct": 2, "passed": 1, "failed": 0, "errors": 0},
        **{"skipped": 1, "attempts": 2, "suite_failures": 0},
    }
    assert said["files"] == [
        {"name": "junit.xml", "format": "junit", "status": "accepted", "tests": 2, "error": None}
    ]
    assert (said["duplicate"], said["dry_run"], said["failures"]) == (False, False, [])
    assert said["verdict"]["exit_code"] == 0
    asked = {
        "repo": metadata["repo"],
        "org_url_slug": metadata["org_url_slug"],
        "upload_id": said["upload_id"].upper(),
    }
    found = await client.done("flaky-tests/get-upload", asked)
    assert found == said


END = {"run": "1", "runner": "pytest", "reason": "unloaded"}
BROKEN = {"file": "tests/b.py", "message": "SyntaxError"}


async def test_what_runners_said_is_answered_again(client):
    more = {"exit_code": 1, "planned": 3, "failed": 1, "passed": 2, "unloaded": [BROKEN]}
    metadata = about(client, runner_ends=[END | more, {**END, "reason": "killed"}])
    said = await taken(client, metadata, ("a.xml", GOOD))
    nothing: dict[str, object] = {
        **dict.fromkeys(("planned", "passed", "failed", "skipped", "not_run"), 0),
        **{"exit_code": None, "shard": "", "unloaded": [], "errors_outside": []},
        **{"unloaded_more": 0, "errors_outside_more": 0},
    }
    whole = [nothing | END | more, nothing | END | {"reason": "killed"}]
    assert said["runner_ends"] == whole
    asked = {name: metadata[name] for name in ("repo", "org_url_slug")}
    found = await client.done("flaky-tests/get-upload", asked | {"upload_id": said["upload_id"]})
    assert found["runner_ends"] == whole


async def test_a_failure_makes_the_verdict(client):
    said = await taken(client, about(client, command_exit_code=3), ("a.xml", FAILING))
    (failure,) = said["failures"]
    assert (failure["name"], failure["parent"], failure["classname"]) == (
        *("test_total", "ui"),
        "TestCart",
    )
    assert (failure["file_path"], failure["quarantined"]) == ("tests/test_cart.py", False)
    assert failure["quarantine_reason"] is None
    assert (said["unquarantined_failures"], said["verdict"]["exit_code"]) == (1, 3)
    assert (await taken(client, about(client), ("a.xml", FAILING)))["verdict"]["exit_code"] == 1


async def test_the_same_content_of_the_same_run_counts_once(client):
    metadata = about(client)
    first = await taken(client, metadata, ("a.xml", GOOD))
    again = await taken(client, metadata, ("other.xml", gzip.compress(GOOD)))
    assert (again["duplicate"], again["upload_id"]) == (True, first["upload_id"])
    other = await taken(client, metadata, ("a.xml", FAILING))
    assert (other["duplicate"], other["upload_id"] == first["upload_id"]) == (False, False)


async def test_a_dry_run_stores_nothing(client):
    metadata = about(client)
    said = await taken(client, {**metadata, "dry_run": True}, ("a.xml", FAILING))
    assert (said["dry_run"], said["upload_id"], said["html_url"]) == (True, None, None)
    assert said["unquarantined_failures"] == 1
    assert (await taken(client, metadata, ("a.xml", FAILING)))["duplicate"] is False


async def test_files_or_the_body_may_be_gzip(client):
    metadata = about(client)
    first = await taken(client, metadata, ("a.xml", gzip.compress(GOOD)))
    packed = gzip.compress(a_form(metadata, ("a.xml", GOOD)))
    answer = await send_bytes(client, packed, **{"Content-Encoding": "gzip"})
    assert (answer.status, answer.json["upload_id"]) == (200, first["upload_id"])


async def test_a_refused_file_spoils_no_other(client):
    said = await taken(client, about(client), ("bad.xml", DTD), ("cut.xml", GOOD[:-20]))
    assert [each["status"] for each in said["files"]] == ["refused", "partial"]
    assert said["files"][0]["error"]["message"] == "A document type declaration is not allowed."
    assert said["counts"]["tests"] == 2
    assert len(said["warnings"]) >= 2


async def test_an_upload_of_nothing_usable_is_refused_with_its_files(client):
    answer = await send(client, about(client), ("bad.xml", DTD), ("empty.xml", b""))
    assert answer.is_problem(422, "no_results")
    assert [(each["name"], each["status"]) for each in answer.json["files"]] == [
        ("bad.xml", "refused"),
        ("empty.xml", "refused"),
    ]
    assert answer.json["files"][1]["error"]["message"] == "The file is empty."


async def test_a_large_report_is_taken(client):
    cases = b"".join(b'<testcase name="t%d" classname="C"/>' % n for n in range(10_000))
    said = await taken(client, about(client), ("a.xml", b"<testsuite>%b</testsuite>" % cases))
    assert said["counts"]["distinct"] == 10_000


async def test_retries_and_owners_are_taken(client):
    retried = GOOD.replace(b'time="0.2"/>', b'><rerunFailure message="x"/></testcase>')
    said = await taken(client, about(client), ("a.xml", retried), codeowners="* @octo/web\n")
    assert (said["counts"]["attempts"], said["counts"]["failed"]) == (3, 0)


@pytest.mark.parametrize(
    ("more", "field", "code"),
    [
        ({"sha": "abc"}, "/sha", "format"),
        ({"ran_at": "2019-01-01T00:00:00Z"}, "/ran_at", "range"),
        ({"format": "tap"}, "/format", "enum"),
        ({"repo": {"host": "h", "owner": "o"}}, "/repo/name", "missing"),
        ({"run_attempt": 0}, "/run_attempt", "range"),
        ({"runner_ends": [END | {"reason": "dreamt"}]}, "/runner_ends/0/reason", "enum"),
        ({"runner_ends": [END | {"planned": -1}]}, "/runner_ends/0/planned", "range"),
        ({"runner_ends": [END] * 51}, "/runner_ends", "length"),
        (
            {"runner_ends": [END | {"unloaded": [{"file": "a.py"}]}]},
            "/runner_ends/0/unloaded/0/message",
            "missing",
        ),
    ],
)
async def test_faulty_metadata_is_refused(client, more, field, code):
    answer = await send(client, about(client, **more), ("a.xml", GOOD))
    assert answer.is_problem(400, "invalid_field")
    (fault,) = answer.json["errors"]
    assert (fault["field"], fault["code"]) == (field, code)


async def test_metadata_that_is_no_json_has_a_place(client):
    answer = await send(client, '{"sha": }', ("a.xml", GOOD))
    assert answer.is_problem(400, "invalid_json")
    assert (answer.json["line"], answer.json["column"]) == (1, 9)


async def test_the_form_is_a_form_with_metadata_first(client):
    assert (await client.post(NAME, about(client))).is_problem(415, "unsupported_media_type")
    answer = await send(client, about(client))
    assert answer.is_problem(422, "no_results")
    broken = await send_bytes(client, b"--between\r\nnothing")
    assert broken.is_problem(400, "bad_request")
    answer = await send_bytes(client, b"x", **{"Content-Encoding": "br"})
    assert answer.is_problem(415, "unsupported_encoding")


async def test_archives_are_refused(client):
    answer = await send(client, about(client), ("a.zip", b"PK\x03\x04\x14\x00"))
    assert answer.is_problem(415, "unsupported_media_type")


async def test_what_is_too_large_is_refused(client):
    metadata = about(client)
    answer = await send(client, metadata, ("a.xml", b" " * (20 * 1024 * 1024)))
    assert answer.is_problem(413, "body_too_large")
    bomb = gzip.compress(bytes(10_000_000))
    answer = await send_bytes(client, bomb, **{"Content-Encoding": "gzip"})
    assert answer.is_problem(413, "body_too_large")
    answer = await send(client, metadata, ("bomb.xml", bomb))
    assert answer.is_problem(422, "no_results")
    assert "expands to more than" in answer.json["files"][0]["error"]["message"]


async def test_only_those_may_upload_who_may(client, world):
    metadata = about(client)
    files = ("a.xml", GOOD)
    assert (await send(client, metadata, files, token="")).status == 401
    refused = await send(client, metadata, files, token=world.read_token)
    assert refused.is_problem(403, "missing_role")
    refused = await send(client, metadata, files, token=world.foreign_token)
    assert refused.is_problem(404, "organization_not_found")
    refused = await send(client, metadata, files, token=world.narrow_token)
    assert refused.is_problem(404, "repository_not_found")
    for token in (world.ci_token, world.queue_token, world.admin_token):
        assert (await send(client, metadata, files, token=token)).status == 200


async def test_an_upload_of_others_is_as_none(client, world):
    metadata = about(client)
    said = await taken(client, metadata, ("a.xml", GOOD))
    asked = {"repo": metadata["repo"], "upload_id": said["upload_id"]}
    for token, slug, code in (
        (world.foreign_token, "octo", "organization_not_found"),
        (world.foreign_token, "initech", "repository_not_found"),
        (world.narrow_token, "octo", "repository_not_found"),
    ):
        body = {**asked, "org_url_slug": slug}
        refused = await client.post("flaky-tests/get-upload", body, token)
        assert refused.is_problem(404, code)
    body = {**asked, "org_url_slug": "octo", "upload_id": str(uuid.uuid4())}
    assert (await client.post("flaky-tests/get-upload", body)).is_problem(404, "upload_not_found")
    gears = {**asked["repo"], "name": "gears"}
    body = {**asked, "org_url_slug": "octo", "repo": gears}
    assert (await client.post("flaky-tests/get-upload", body)).is_problem(404, "upload_not_found")


async def test_an_upload_is_deleted_by_an_admin_and_may_then_come_again(client, instance):
    metadata = about(client)
    said = await taken(client, metadata, ("a.xml", GOOD))
    asked = {name: metadata[name] for name in ("repo", "org_url_slug")}
    asked["upload_id"] = said["upload_id"]
    for token in filter(None, (instance.ci_token, instance.queue_token)):
        assert (await client.post("flaky-tests/delete-upload", asked, token)).status == 403
    gone = await client.done("flaky-tests/delete-upload", asked)
    assert gone == {"upload_id": said["upload_id"], "deleted": True}
    for name in ("get-upload", "delete-upload"):
        answer = await client.post(f"flaky-tests/{name}", asked)
        assert answer.is_problem(404, "upload_not_found")
    assert not (await taken(client, metadata, ("a.xml", GOOD)))["duplicate"]


async def test_an_upload_may_be_sent_again_with_a_key(client):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    content = a_form(about(client), ("a.xml", GOOD))
    first = await send_bytes(client, content, **key)
    again = await send_bytes(client, content, **key)
    assert (again.body, again.headers["Idempotency-Replayed"]) == (first.body, "true")
    assert first.json["duplicate"] is False
