"""The log: its form, and what never stands in it."""

import errno
import io
import json
import logging
import threading
from datetime import UTC, datetime

import pytest
import structlog

from bot import telemetry

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"


class AtNoon:
    def now(self):
        return datetime(2026, 3, 2, 12, 0, 0, 7000, tzinfo=UTC)

    def monotonic_s(self):
        return 0.0

    async def sleep(self, seconds):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _log_as_before():
    root = logging.getLogger()
    before = root.handlers, root.level
    yield
    root.handlers, root.level = before
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def started(log_format="json", level="info"):
    stream = io.StringIO()
    telemetry.start(log_format, level, AtNoon(), stream)
    return stream


def test_a_line_is_one_json_object_that_begins_with_time_level_and_event():
    stream = started()
    structlog.get_logger().info("turn", queue="octo/widgets@main", inputs=3, actions=["Land"])
    assert stream.getvalue() == (
        '{"ts":"2026-03-02T12:00:00.007Z","level":"info","event":"turn",'
        '"queue":"octo/widgets@main","inputs":3,"actions":["Land"]}\n'
    )


def test_facts_bound_at_the_edge_stand_in_every_line():
    stream = started()
    with structlog.contextvars.bound_contextvars(request_id="r1"):
        structlog.get_logger().info("request", status=200)
    assert json.loads(stream.getvalue())["request_id"] == "r1"


class Full(io.StringIO):
    """A log on a disk that is full at first."""

    is_full = True

    def flush(self):
        if self.is_full:
            self.seek(0)
            self.truncate()
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("level", ["info", "warning", "error", "exception"])
def test_lines_that_cannot_be_written_are_counted_once_one_can(level):
    stream = Full()
    telemetry.start("json", "info", AtNoon(), stream)
    for _ in range(3):
        getattr(structlog.get_logger(), level)("turn")
    stream.is_full = False
    for _ in range(2):
        structlog.get_logger().info("turn")
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["event"] for each in found] == ["turn", "log_lines_lost", "turn"]
    assert found[1]["lines"] == 3


class InPieces(io.StringIO):
    """A log that takes its first line in two pieces, while another thread logs as well."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def write(self, text):
        super().write(text[:10])
        if self.other.ident is None:
            self.other.start()
            self.other.join(0.1)
        super().write(text[10:])


def test_lines_of_two_threads_do_not_mix():
    other = threading.Thread(target=lambda: structlog.get_logger().info("request"))
    stream = InPieces(other)
    telemetry.start("json", "info", AtNoon(), stream)
    structlog.get_logger().info("turn")
    other.join()
    found = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert found == ["turn", "request"]


def test_off_a_terminal_auto_means_json():
    stream = started("auto")
    structlog.get_logger().info("turn")
    assert json.loads(stream.getvalue())["event"] == "turn"


def test_text_is_one_line_for_people_with_a_stack_below():
    stream = started("text")
    try:
        raise ValueError("broken")
    except ValueError:
        structlog.get_logger().exception("turn", queue="octo/widgets@main", note="two words")
    first, *stack = stream.getvalue().splitlines()
    assert first == '12:00:00 error   turn  queue=octo/widgets@main note="two words"'
    assert stack[-1] == "ValueError: broken"


def test_what_lies_below_the_level_is_not_written():
    stream = started(level="warning")
    structlog.get_logger().info("turn")
    logging.getLogger("aiohttp").info("access")
    assert stream.getvalue() == ""


def test_lines_of_libraries_join_ours():
    stream = started()
    logging.getLogger("aiohttp.server").error("Error for %s", "hgt_abcdefghij_secret")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["logger"]) == ("error", "aiohttp.server")
    assert line["event"] == "Error for [masked]"


SECRETS = [
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghp_abc.def-ghi_jkl",
    "github_pat_11ABCDEFG_abcdef",
    "hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjl",
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    PEM,
]


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_wherever_it_stands(secret, log_format):
    stream = started(log_format)
    log = structlog.get_logger()
    log.info(f"saw {secret}", plain=secret, inside=f"x{secret}y", listed=[secret])
    log.info("deep", answer={"headers": {"a": [secret, {"b": secret}]}}, thing=Shown(secret))
    try:
        raise ValueError(secret)
    except ValueError:
        log.exception("failed")
    assert "saw [masked]" in stream.getvalue()
    for part in secret.split("\n")[:2]:
        assert part not in stream.getvalue()


class Shown:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://headgate:pa55word@db.internal/queue",
        "https://x-access-token:pa55word@github.com/octo/widgets.git",
        "Authorization: Bearer pa55word",
        "authorization: pa55word",
        "x-api-token: pa55word",
        "Cookie: headgate=pa55word",
    ],
)
def test_credentials_within_a_text_are_masked(text):
    stream = started()
    structlog.get_logger().info("failed", error=text)
    assert "pa55word" not in stream.getvalue()
    assert "[masked]" in stream.getvalue()


@pytest.mark.parametrize("name", ["authorization", "X-Api-Token", "cookie", "Set-Cookie", "token"])
def test_a_field_that_holds_a_secret_is_masked_whole(name):
    stream = started()
    structlog.get_logger().info("request", **{name: "pa55word"}, headers={name: "pa55word"})
    assert "pa55word" not in stream.getvalue()


def test_nobody_forges_a_line_by_a_line_end_or_paints_the_terminal():
    stream = started("text")
    structlog.get_logger().info("title", text="a\nb\x1b[31m\u202ec")
    assert stream.getvalue() == '12:00:00 info    title  text="a b?[31m?c"\n'


def test_a_body_does_not_fill_the_log():
    stream = started()
    structlog.get_logger().info("answer", text="x" * 100_000)
    assert len(stream.getvalue()) < 10_000


def test_what_is_no_json_does_not_break_a_line():
    stream = started()
    structlog.get_logger().info("odd", number=2**80, text="\ud800")
    assert json.loads(stream.getvalue())["event"] == "'odd'"
