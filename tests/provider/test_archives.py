"""Archives that strangers packed: what is read of them, and what never is."""

import io
import random
import struct
import zipfile
import zlib

import pytest

from service.provider import archives
from service.provider.archives import Archive, ArchiveFile, NoArchive, RefusedFile

REPORT = b"<testsuite/>"
LISTED = struct.Struct("<4s6H3L5H2L")
LISTED_AT = {"flags": 8, "method": 10, "checksum": 16, "packed_size": 20, "size": 24, "offset": 42}
WIDTHS = {"flags": "<H", "method": "<H"}


def zipped(files, *, method=zipfile.ZIP_DEFLATED, comment=b""):
    """An archive as the standard library writes it; names may be ready-made ZipInfos."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.comment = comment
        for name, content in files:
            archive.writestr(name, content)
    return made.getvalue()


def changed(packed, name, nth=1, **fields):
    """The archive with other numbers in the directory's line of its nth file of that name."""
    found = bytearray(packed)
    at = len(packed)
    for _ in range(nth):
        at = packed.rindex(name.encode(), 0, at)
    line = at - LISTED.size
    assert found[line : line + 4] == b"PK\x01\x02"
    for field, value in fields.items():
        struct.pack_into(WIDTHS.get(field, "<L"), found, line + LISTED_AT[field], value)
    return bytes(found)


def files_of(packed):
    archive = archives.read(packed)
    assert isinstance(archive, Archive), archive
    return list(archive.files())


def refused(packed):
    found = archives.read(packed)
    assert isinstance(found, NoArchive), found
    return found.reason


def reasons(packed):
    return [each.reason for each in files_of(packed) if isinstance(each, RefusedFile)]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_reports_are_read_in_their_order_and_nothing_else(method):
    names = ("b/junit.xml", "log.txt", "a.JSON", "c.jsonl", "d.trx", "image.png", "xml", "e.xml/")
    packed = zipped([(name, name.encode()) for name in names], method=method)
    assert files_of(packed) == [
        ArchiveFile(name, name.encode()) for name in ("b/junit.xml", "a.JSON", "c.jsonl", "d.trx")
    ]


def test_what_another_reader_finds_is_found():
    chance = random.Random(7)
    for _ in range(30):
        wanted = [
            (f"{number}.xml", chance.randbytes(40) * chance.randrange(30))
            for number in range(chance.randrange(20))
        ]
        packed = zipped(wanted, method=chance.choice((0, 8)), comment=chance.randbytes(5))
        assert files_of(packed) == [ArchiveFile(name, content) for name, content in wanted]


def test_an_archive_written_as_a_stream_is_read():
    class Stream(io.BytesIO):
        def seekable(self):
            return False

    made = Stream()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.xml", "w", force_zip64=True) as entry,
    ):
        entry.write(REPORT)
    assert files_of(made.getvalue()) == [ArchiveFile("a.xml", REPORT)]


def test_numbers_of_64_bits_are_read_from_the_extra_fields():
    packed = zipped([("a.xml", REPORT)], method=zipfile.ZIP_STORED)
    end = len(packed) - archives.END.size
    start = archives.END.unpack_from(packed, end)[6]
    sizes = struct.pack("<2H3Q", 1, 24, len(REPORT), len(REPORT), 0)
    other = struct.pack("<2H2s", 0x7075, 2, b"xx")
    line = bytearray(packed[start:end] + other + sizes)
    struct.pack_into("<2L", line, 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<H", line, 30, len(other + sizes))
    struct.pack_into("<L", line, 42, 0xFFFFFFFF)
    big = archives.BIG_END.pack(b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(line), start)
    locator = archives.LOCATOR.pack(b"PK\6\7", 0, start + len(line), 1)
    last = archives.END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    whole = packed[:start] + bytes(line) + big + locator + last
    assert zipfile.ZipFile(io.BytesIO(whole)).read("a.xml") == REPORT
    assert files_of(whole) == [ArchiveFile("a.xml", REPORT)]


def test_an_empty_archive_holds_nothing():
    assert files_of(zipped([])) == []


@pytest.mark.parametrize(
    "name",
    ["../a.xml", "a/../../b.xml", "/etc/a.xml", "..\\a.xml", "\\\\host\\a.xml", "C:\\a.xml"],
)
def test_a_name_that_leads_out_is_refused(name):
    entry = zipfile.ZipInfo("x")
    entry.filename = name
    packed = zipped([(entry, REPORT), ("good.xml", REPORT)])
    refusal = RefusedFile(name.replace("\\", "/"), "Its name leads out of the archive.")
    assert files_of(packed) == [refusal, ArchiveFile("good.xml", REPORT)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31m\n.xml", "a\ufffd[31m\ufffd.xml"),
        ("dir\\b.xml", "dir/b.xml"),
        ("…/ü.xml", "…/ü.xml"),
        ("a..b.xml", "a..b.xml"),
    ],
)
def test_names_are_text(name, shown):
    entry = zipfile.ZipInfo("x")
    entry.filename = name
    assert files_of(zipped([(entry, REPORT)])) == [ArchiveFile(shown, REPORT)]


def test_a_name_with_a_nul_is_refused():
    packed = zipped([("a_b.xml", REPORT)]).replace(b"a_b.xml", b"a\0b.xml")
    assert reasons(packed) == ["Its name leads out of the archive."]


def test_a_name_that_is_no_utf_8_refuses_the_archive():
    packed = zipped([("\u00fc.xml", REPORT)]).replace("\u00fc".encode(), b"\xff\xff")
    assert refused(packed) == archives.DAMAGED


def test_a_name_beyond_any_measure_is_refused_and_cut():
    found = files_of(zipped([("a" * 2_000 + ".xml", REPORT)]))
    assert found == [RefusedFile("a" * 1_000, "Its name is longer than 1,000 characters.")]


def test_a_link_is_not_followed_and_not_read():
    entry = zipfile.ZipInfo("link.xml")
    entry.create_system = archives.UNIX
    entry.external_attr = 0o120777 << 16
    packed = zipped([(entry, "/etc/passwd")])
    assert files_of(packed) == [RefusedFile("link.xml", "It is a link or no plain file.")]


def test_archives_in_the_archive_are_not_opened():
    inner = zipped([("a.xml", REPORT)])
    gzip = b"\x1f\x8b\x08" + bytes(20)
    packed = zipped([("inner.xml", inner), ("packed.json", gzip)])
    assert reasons(packed) == ["It is an archive inside the archive."] * 2


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"flags": 0x0001}, "It is encrypted."),
        ({"flags": 0x0041}, "It is encrypted."),
        ({"method": 12}, "It is packed in a way that is not read here."),
        ({"size": 11}, "It is damaged, or holds more or less than it says."),
        ({"size": 13}, "It is damaged, or holds more or less than it says."),
        ({"size": 0}, "It is damaged, or holds more or less than it says."),
        ({"packed_size": 5}, "It is damaged, or holds more or less than it says."),
        ({"checksum": 1}, "It is damaged, or holds more or less than it says."),
        ({"method": 0}, "It is damaged, or holds more or less than it says."),
        ({"size": archives.FILE_BYTES_MAX + 1}, "It is larger than 100 MiB."),
        ({"size": (8 << 20) + 1}, "It unpacks to more than 8 MiB and 200 times its packed size."),
    ],
)
def test_an_entry_that_lies_or_hides_is_refused_alone(fields, reason):
    packed = changed(zipped([("a.xml", REPORT), ("b.xml", REPORT)]), "a.xml", **fields)
    assert files_of(packed) == [RefusedFile("a.xml", reason), ArchiveFile("b.xml", REPORT)]


def test_of_a_bomb_no_more_is_unpacked_than_it_admits():
    packed = changed(zipped([("a.xml", bytes(50 << 20))]), "a.xml", size=1_000)
    archive = archives.read(packed)
    assert isinstance(archive, Archive)
    assert reasons(packed) == ["It is damaged, or holds more or less than it says."]


def test_a_bomb_that_admits_it_is_refused_unread():
    packed = zipped([("a.xml", bytes(50 << 20))])
    assert reasons(packed) == ["It unpacks to more than 8 MiB and 200 times its packed size."]


def test_a_log_of_one_line_again_and_again_is_no_bomb():
    chatty = b"<a>" + b"retrying in 5 ms\n" * 400_000 + b"</a>"
    assert files_of(zipped([("a.xml", chatty)])) == [ArchiveFile("a.xml", chatty)]


def test_too_much_in_all_is_refused_as_a_whole(monkeypatch):
    monkeypatch.setattr(archives, "UNPACKED_MAX", 100)
    assert "unpacks to more than" in refused(zipped([(f"{n}.xml", bytes(30)) for n in range(4)]))


def test_too_many_reports_are_refused_as_a_whole_and_other_files_not_counted():
    many = [(f"{n}.txt", "") for n in range(5_000)] + [(f"{n}.xml", "") for n in range(1_000)]
    assert len(files_of(zipped(many))) == 1_000
    assert "more than 1,000 reports" in refused(zipped([*many, ("one.xml", "")]))


def test_a_directory_beyond_any_measure_is_refused_unread(monkeypatch):
    monkeypatch.setattr(archives, "DIRECTORY_MAX", 100)
    packed = zipped([("a" * 40 + ".txt", ""), ("b" * 40 + ".txt", "")])
    assert refused(packed) == "The archive lists too many files."


def test_entries_that_share_their_bytes_are_refused_as_a_whole():
    packed = zipped([("a.xml", bytes(range(250))), ("b.xml", bytes(range(250)))])
    same = changed(packed, "b.xml", offset=0)
    assert refused(same) == "Files in the archive overlap."


def test_an_entry_inside_another_is_refused_as_a_whole():
    inner = zipped([("in.xml", REPORT)], method=zipfile.ZIP_STORED)
    packed = zipped([("a.xml", inner), ("b.xml", REPORT)], method=zipfile.ZIP_STORED)
    quoted = changed(packed, "b.xml", offset=packed.index(b"PK\3\4", 4))
    assert refused(quoted) == "Files in the archive overlap."


def test_data_may_not_reach_into_the_directory():
    packed = zipped([("a.xml", REPORT)], method=zipfile.ZIP_STORED)
    assert refused(changed(packed, "a.xml", packed_size=1_000)) == archives.DAMAGED
    assert refused(changed(packed, "a.xml", offset=7)) == archives.DAMAGED
    assert refused(changed(packed, "a.xml", offset=1 << 30)) == archives.DAMAGED


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"", "It is not a zip archive."),
        (b"<html>", "It is not a zip archive."),
        (zipped([("a.xml", REPORT)]) + b"more", archives.DAMAGED),
        (b"more" + zipped([("a.xml", REPORT)]), archives.DAMAGED),
        (archives.END.pack(b"PK\5\6", 1, 0, 0, 0, 0, 0, 0), archives.DAMAGED),
        (archives.END.pack(b"PK\5\6", 0, 0, 9, 9, 90, 5, 0), archives.DAMAGED),
    ],
)
def test_what_is_no_whole_archive_is_refused(packed, reason):
    assert refused(packed) == reason


def test_an_archive_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "PACKED_MAX", 50)
    assert refused(zipped([("a.xml", REPORT)])) == archives.TOO_LARGE


def test_no_damage_makes_more_than_a_refusal():
    chance = random.Random(11)
    whole = zipped([(f"{n}.xml", zlib.compress(bytes([n]) * 90)) for n in range(3)])
    for _ in range(3_000):
        broken = bytearray(whole[: chance.randrange(len(whole) // 2, len(whole) + 1)])
        for _ in range(chance.randrange(1, 8)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        found = archives.read(bytes(broken))
        if isinstance(found, Archive):
            assert all(isinstance(each, ArchiveFile | RefusedFile) for each in found.files())
