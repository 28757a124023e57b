"""The form of an upload, byte by byte: what is taken apart, what is refused and how."""

import gzip
from contextlib import suppress

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Invalid, Malformed
from service.http.errors import HttpRefused
from service.http.strict_json import InvalidJson
from service.testhealth.api import upload_form
from service.testhealth.api.models.uploads import UploadTestResults
from service.testhealth.reports.results import Format

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
METADATA = (
    '{"repo": {"host": "github.com", "owner": "octo", "name": "widgets"}, '
    f'"org_url_slug": "octo", "sha": "{SHA}"}}'
)
REPORT = b"<testsuite><testcase name='a'/></testsuite>"


def a_part(name, content, *more, filename=None):
    """One part as a client writes it, with the line break before the next boundary."""
    named = f'; filename="{filename}"' if filename is not None else ""
    head = [f'Content-Disposition: form-data; name="{name}"{named}', *more]
    content = content if isinstance(content, bytes) else content.encode()
    return "\r\n".join([*head, "", ""]).encode() + content + b"\r\n"


def a_form(*parts, boundary="xyz"):
    line = f"--{boundary}".encode()
    return b"".join(line + b"\r\n" + part for part in parts) + line + b"--\r\n"


def a_request(boundary="xyz", **headers):
    kind = {"Content-Type": f'multipart/form-data; boundary="{boundary}"'}
    return make_mocked_request("POST", "/", headers=kind | headers)


def read(*parts, **headers):
    body = a_form(*parts)
    if "Content-Encoding" in headers:
        body = gzip.compress(body)
    return upload_form.read(UploadTestResults, a_request(**headers), body)


META = a_part("metadata", METADATA, "Content-Type: application/json")
FILE = a_part("file", REPORT, filename="junit.xml")


def refusal(*parts, **headers):
    """Status and code of the refusal of a form."""
    with pytest.raises(HttpRefused) as refused:
        read(*parts, **headers)
    return refused.value.status, refused.value.code


def fault(*parts):
    """The one field at fault and how."""
    with pytest.raises(Malformed) as malformed:
        read(*parts)
    (found,) = malformed.value.errors
    return found.field, found.code


def test_a_form_gives_metadata_files_and_owners():
    owners = a_part("codeowners", "* @octo/web\n".encode("utf-8-sig"))
    second = a_part("file", b"\r\n--xy\r\n", filename="b/é.xml")
    upload = read(META, FILE, second, owners)
    assert upload.asked.sha == SHA
    assert [(each.name, each.content) for each in upload.files] == [
        ("junit.xml", REPORT),
        ("b/é.xml", b"\r\n--xy\r\n"),
    ]
    assert upload.codeowners == "* @octo/web\n"


def test_what_was_not_sent_has_its_default():
    meta = read(META, FILE).meta()
    assert (meta.branch, meta.run_attempt, meta.job, meta.variant) == (None, 1, "", "")
    assert (meta.ran_at, meta.format, meta.command_exit_code) == (None, None, None)
    assert (meta.dry_run, meta.codeowners) == (False, None)


def test_every_field_arrives():
    more = (
        f', "tree_sha": "{SHA.upper()}", "branch": "main", "pr_number": "7", "run_id": "9",'
        ' "run_attempt": 2, "run_url": "https://ci/9", "job": "unit", "variant": "linux",'
        ' "source_root": "/src", "ran_at": "2026-03-02T14:00:00+01:00", "machine": "m1",'
        ' "format": "JUnit", "command_exit_code": 3, "dry_run": true}'
    )
    meta = read(a_part("metadata", METADATA[:-1] + more), FILE).meta()
    assert (meta.tree_sha, meta.branch, meta.pr_number) == (SHA, "main", 7)
    assert (meta.run_id, meta.run_attempt, meta.run_url) == ("9", 2, "https://ci/9")
    assert (meta.job, meta.variant, meta.source_root) == ("unit", "linux", "/src")
    assert (meta.machine, meta.format) == ("m1", Format.JUNIT)
    assert (meta.command_exit_code, meta.dry_run) == (3, True)
    assert meta.ran_at is not None
    assert meta.ran_at.isoformat() == "2026-03-02T13:00:00+00:00"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('"sha": "abc"', ("/sha", "format")),
        ('"run_attempt": 0', ("/run_attempt", "range")),
        ('"run_attempt": 1001', ("/run_attempt", "range")),
        ('"run_url": "ftp://ci/9"', ("/run_url", "format")),
        ('"command_exit_code": 256', ("/command_exit_code", "range")),
        ('"format": "tap"', ("/format", "enum")),
        ('"ran_at": "2026-03-02T14:00:00"', ("/ran_at", "format")),
        ('"dry_run": "true"', ("/dry_run", "type")),
        (f'"job": "{"j" * 256}"', ("/job", "length")),
        ('"pr_numbr": 7', ("/pr_numbr", "unknown")),
    ],
)
def test_each_field_is_checked(more, said):
    known = METADATA.replace(f', "sha": "{SHA}"', "") if '"sha"' in more else METADATA
    assert fault(a_part("metadata", f"{known[:-1]}, {more}}}"), FILE) == said


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([FILE, META], ("/metadata", "missing")),
        ([FILE], ("/metadata", "missing")),
        ([META, FILE, META], ("/metadata", "length")),
        ([META, a_part("file", REPORT)], ("/file/0", "missing")),
        ([META, FILE, a_part("file", REPORT, filename="")], ("/file/1", "missing")),
        ([META, a_part("file", REPORT, filename="n" * 1001)], ("/file/0", "length")),
        ([META, *[FILE] * 101], ("/file", "length")),
        ([META, FILE, a_part("fiel", "x")], ("/fiel", "unknown")),
        ([META, FILE, *[a_part("codeowners", "x")] * 2], ("/codeowners", "length")),
    ],
)
def test_parts_come_in_order_and_number(parts, said):
    assert fault(*parts) == said


def test_a_runner_that_was_killed_may_be_told_without_a_file():
    end = '{"run": "1", "runner": "pytest", "reason": "killed"}'
    told = read(a_part("metadata", f'{METADATA[:-1]}, "runner_ends": [{end}]}}'))
    assert (len(told.asked.runner_ends), told.files) == (1, ())
    for nothing in (META, a_part("metadata", f'{METADATA[:-1]}, "runner_ends": []}}')):
        with pytest.raises(Invalid, match="is missing: send") as refused:
            read(nothing)
        assert refused.value.code == "no_results"


def test_a_hundred_files_are_taken():
    assert len(read(META, *[FILE] * 100).files) == 100


def test_metadata_is_json_of_64_kib():
    with pytest.raises(InvalidJson):
        read(a_part("metadata", "{"), FILE)
    filled = METADATA + " " * (64 * 1024 - len(METADATA))
    assert read(a_part("metadata", filled), FILE).asked.sha == SHA
    assert refusal(a_part("metadata", filled + " "), FILE) == (413, "body_too_large")
    owners = a_part("codeowners", b"#" * (3 * 1024 * 1024 + 1))
    assert refusal(META, FILE, owners) == (413, "body_too_large")


@pytest.mark.parametrize(
    "magic",
    [b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ\x00", b"x" * 257 + b"ustar"],
)
def test_archives_are_refused(magic):
    archive = a_part("file", magic + b"...", filename="reports.zip")
    assert refusal(META, archive) == (415, "unsupported_media_type")


def test_the_body_may_be_gzip_or_the_file_but_not_both():
    packed = a_part("file", gzip.compress(REPORT), filename="junit.xml.gz")
    assert len(read(META, FILE, **{"Content-Encoding": "gzip"}).files) == 1
    assert len(read(META, packed).files) == 1
    both = refusal(META, packed, **{"Content-Encoding": "gzip"})
    assert both == (415, "unsupported_encoding")


@pytest.mark.parametrize("more", ["Content-Transfer-Encoding: base64", "Content-Encoding: gzip"])
def test_a_part_is_not_encoded_again(more):
    part = a_part("file", "PGE+", more, filename="a.xml")
    assert refusal(META, part) == (415, "unsupported_encoding")


def test_what_expands_too_far_is_too_large(monkeypatch):
    bomb = gzip.compress(b"\0" * 9_000_000)
    with pytest.raises(HttpRefused) as refused:
        upload_form.expanded(bomb)
    assert (refused.value.status, refused.value.code) == (413, "body_too_large")
    monkeypatch.setattr(upload_form, "EXPANSION_RATIO_MAX", 10_000)
    assert len(upload_form.expanded(bomb)) == 9_000_000
    monkeypatch.setattr(upload_form, "EXPANDED_BYTES_MAX", 8_999_999)
    with pytest.raises(HttpRefused, match="100 MiB"):
        upload_form.expanded(bomb)


def test_a_body_that_says_one_thing_again_and_again_is_not_too_large():
    chatty = b"retrying in 5 ms\n" * 400_000
    assert upload_form.expanded(gzip.compress(chatty)) == chatty


# Without a time: the names of tests are the same in every process.
CUT = gzip.compress(b"x" * 99, mtime=0)[:-5]
FOLLOWED = gzip.compress(b"x", mtime=0) + b"more"


@pytest.mark.parametrize("body", [b"", b"plain", CUT, FOLLOWED])
def test_a_damaged_gzip_body_is_a_bad_request(body):
    with pytest.raises(HttpRefused) as refused:
        upload_form.expanded(body)
    assert (refused.value.status, refused.value.code) == (400, "bad_request")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Type": "application/json"}, "unsupported_media_type"),
        ({"Content-Type": "multipart/mixed; boundary=x"}, "unsupported_media_type"),
        ({"Content-Type": "multipart/form-data"}, "unsupported_media_type"),
        ({"Content-Type": f"multipart/form-data; boundary={'x' * 71}"}, "unsupported_media_type"),
        ({"Content-Encoding": "br"}, "unsupported_encoding"),
        ({"Content-Encoding": "gzip, gzip"}, "unsupported_encoding"),
    ],
)
def test_other_types_and_encodings_are_refused_unread(headers, code):
    with pytest.raises(HttpRefused) as refused:
        upload_form.check_headers(a_request(**headers))
    assert (refused.value.status, refused.value.code) == (415, code)


BROKEN = [
    b"",
    b"no boundary at all",
    b"--xyz",
    b"--xyz\r\n",
    b"--xyz\r\n\r\nno headers\r\n--xyz--",
    b"--xyz junk\r\n" + FILE + b"--xyz--",
    b"--xyz\r\n" + FILE,
    b"--xyz\r\nContent-Disposition: form-data\r\n\r\nx\r\n--xyz--",
    b'--xyz\r\nContent-Disposition: attachment; name="file"\r\n\r\nx\r\n--xyz--',
    b'--xyz\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nx\r\n--xyz--',
    b"--xyz\r\nX: " + b"x" * 9000 + b"\r\n\r\nx\r\n--xyz--",
]


@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_form_is_a_bad_request(body):
    with pytest.raises(HttpRefused) as refused:
        list(upload_form.parts(body, b"xyz"))
    assert (refused.value.status, refused.value.code) == (400, "bad_request")


def test_preamble_epilogue_blanks_and_empty_parts_are_allowed():
    empty = a_part("file", b"", filename="a.xml")
    body = b"hello\r\n--xyz \t\r\n" + empty + b"--xyz--\r\nbye"
    (part,) = upload_form.parts(body, b"xyz")
    assert (part.name, part.filename, part.content) == ("file", "a.xml", b"")
    (part,) = upload_form.parts(b"--xyz\r\n" + empty[:-2] + b"\r\n--xyz--", b"xyz")
    assert part.content == b""


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5))
def test_whatever_a_part_holds_comes_out_as_it_went_in(contents):
    boundary = "a boundary that no content holds"
    body = a_form(*(a_part("file", each, filename="a") for each in contents), boundary=boundary)
    assert [each.content for each in upload_form.parts(body, boundary.encode())] == contents


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_otherwise(noise):
    for body in (noise, a_form(META)[:-20] + noise, b"--xyz\r\n" + noise + b"\r\n--xyz--"):
        with suppress(HttpRefused):
            list(upload_form.parts(body, b"xyz"))
