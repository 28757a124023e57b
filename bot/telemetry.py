"""The log: one JSON object a line on stderr, or readable lines on a terminal.

Facts come from `structlog.get_logger()` anywhere in the tree, with what the edges bound by
contextvars; lines of foreign libraries join them. Redaction is the last thing that happens to a
line before it is written, so no caller has to think of it (docs/design/security.md 7).
"""

import logging
import re
import sys
import threading
from collections.abc import Mapping, MutableMapping
from typing import Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

from service.clock import Clock

log = structlog.get_logger()

MASK = "[masked]"

# docs/design/security.md 7: provider tokens, our tokens, signing secrets, keys, credentials in
# addresses.
SECRET_TEXT = re.compile(
    r"""
    gh[opsur]_[A-Za-z0-9._-]+
  | github_pat_[A-Za-z0-9_]+
  | hg[tu]_[A-Za-z0-9_-]+
  | (?<=/setup\?token=)[A-Za-z0-9_-]+
  | whsec_[A-Za-z0-9+/=_-]+
  | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)
  | (?<=://)[^/\s:@]*:[^/\s@]+(?=@)
  | (?<=://)[^/\s:@]{20,}(?=@)
  | (?i:(?<=bearer\ )|(?<=authorization:\ )|(?<=x-api-token:\ )|(?<=cookie:\ ))[^\r\n,"']+
    """,
    re.VERBOSE | re.DOTALL,
)

# Fields whose whole value is a secret, whatever it looks like.
SECRET_FIELDS = frozenset(
    {
        "authorization",
        "cookie",
        "password",
        "private_key",
        "secret",
        "secret_key",
        "set_cookie",
        "token",
        "webhook_secret",
        "x_api_token",
    }
)

# A fact longer than this is a body, and bodies do not belong into the log.
TEXT_MAX = 8_000
DEPTH_MAX = 6

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def start(
    log_format: Literal["auto", "json", "text"],
    log_level: str,
    clock: Clock,
    stream: TextIO | None = None,
) -> None:
    """Send all logs to `stream` (stderr) from now on; a second call replaces the first.

    `auto` is text on a terminal, else JSON. `log_level` is a key of LEVELS; what lies below
    costs nothing.
    """
    target = stream or sys.stderr
    as_text = log_format == "text" or (log_format == "auto" and target.isatty())
    lines = Lines(target)
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        Stamp(clock),
        structlog.processors.format_exc_info,
        _redact,
        _text_line if as_text else _json_line,
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[log_level]),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [Forwarded()]
    root.setLevel(max(LEVELS[log_level], logging.WARNING))
    logging.captureWarnings(capture=True)


class Lines:
    """Writes the log. A line that cannot be written is dropped, and raises no error.

    The next line that can be written is followed by the number of dropped lines. It is an upper
    bound: the stream may have kept some of them in its buffer.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0
        self._lock = threading.RLock()

    def write(self, line: str) -> None:
        """Write a line of any level."""
        with self._lock:
            try:
                self._stream.write(f"{line}\n")
                self._stream.flush()
            except (OSError, ValueError):
                self._lost += 1
                return
            lost, self._lost = self._lost, 0
        if lost:
            # The disk was full, or nobody read the log. The number is an upper bound.
            log.warning("log_lines_lost", lines=lost)

    debug = info = warning = error = critical = write


class Stamp:
    """Adds the time to a line, from the shared clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __call__(self, _logger: object, _method: str, line: EventDict) -> EventDict:
        """Return the line with `ts`, UTC in milliseconds."""
        line["ts"] = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return line


class Forwarded(logging.Handler):
    """Forwards the lines of libraries that use the standard library's logging."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record through structlog, which adds the time and masks secrets."""
        exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
        structlog.get_logger().log(
            max(record.levelno // 10 * 10, logging.DEBUG),
            record.getMessage(),
            logger=record.name,
            exc_info=exc_info,
        )


def _redact(_logger: object, _method: str, line: MutableMapping[str, object]) -> EventDict:
    """Return the line without secrets, with plain values alone."""
    return {name: redacted(name, value) for name, value in line.items()}


def redacted(name: str, value: object, depth: int = 0) -> object:
    """Return a value without secrets: masked whole by its field's name, else within its text."""
    if name.lower().replace("-", "_") in SECRET_FIELDS and value is not None:
        return MASK
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth < DEPTH_MAX and isinstance(value, Mapping):
        return {str(key): redacted(str(key), each, depth + 1) for key, each in value.items()}
    if depth < DEPTH_MAX and isinstance(value, list | tuple | set | frozenset):
        return [redacted("", each, depth + 1) for each in value]
    return masked(value if isinstance(value, str) else str(value))


def masked(text: str) -> str:
    """Return the text with every secret masked, cut at TEXT_MAX characters."""
    # Cut after masking: half a token would pass unseen.
    clean = SECRET_TEXT.sub(MASK, text)
    return clean if len(clean) <= TEXT_MAX else clean[:TEXT_MAX] + "…"


def _json_line(_logger: object, _method: str, line: EventDict) -> str:
    """Return one JSON object: `ts level event` first, then the facts in the order given."""
    ordered = {name: line.pop(name) for name in ("ts", "level", "event") if name in line}
    ordered.update(line)
    try:
        return orjson.dumps(ordered).decode()
    except TypeError:
        # Integers beyond 64 bits and lone surrogates; a log line must not fail.
        return orjson.dumps({name: ascii(value) for name, value in ordered.items()}).decode()


def _text_line(_logger: object, _method: str, line: EventDict) -> str:
    """Return `14:02:11 info    turn  queue=… inputs=3`, with a stack below."""
    stamp = str(line.pop("ts"))[11:19]
    level, event = line.pop("level"), line.pop("event")
    stack = line.pop("exception", None)
    facts = " ".join(f"{name}={shown(value)}" for name, value in line.items())
    said = CONTROL.sub("?", f"{stamp} {level:<8}{event}  {facts}".replace("\n", " ").rstrip())
    return said if stack is None else f"{said}\n{CONTROL.sub('?', str(stack))}"


def shown(value: object) -> str:
    """Return a fact for a readable line, quoted if it contains a space."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=repr).decode()
    return f'"{text}"' if isinstance(value, str) and re.search(r"\s", text) else text
