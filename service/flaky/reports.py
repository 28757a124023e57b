"""One file of an upload to its cases: container, encoding, format, reader."""

from collections.abc import Callable
from dataclasses import replace

from service.flaky import junit
from service.flaky.reading import Wishes, refused
from service.flaky.results import Fault, Format, ReportFile
from service.flaky.text import Text, text_of, unpacked

READERS: dict[Format, Callable[[Text, Wishes], ReportFile]] = {Format.JUNIT: junit.read}


def read(content: bytes, wanted: Format | None, wishes: Wishes) -> ReportFile:
    """The file, whatever it is: never raises.

    `wanted` is the format that the upload names; a file of another one is refused. None: as the
    content says (FLAKY.md 2.7).
    """
    bytes_read = unpacked(content)
    if isinstance(bytes_read, Fault):
        return refused(bytes_read)
    if not bytes_read.content.strip(b" \t\r\n"):
        return refused(bytes_read.fault or Fault("The file is empty."))
    text = text_of(bytes_read.content)
    report = READERS[Format.JUNIT](text, wishes)
    return replace(report, warnings=(*text.warnings, *report.warnings))
