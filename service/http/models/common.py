"""Fields that several requests share, and how a faulty body becomes a list of errors."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import ErrorDetails, PydanticCustomError

from service.errors import FieldError, Malformed
from service.http.models import issuers, unknown
from service.vocabulary import RepoRef, Sha

NUMBER_MAX = 4_294_967_295
ERRORS_MAX = 50
WAIT_MAX_S = 30

_DIGITS = re.compile(r"[0-9]{1,10}")
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_REPOSITORY_PART = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._-]+"

HOST = r"^[A-Za-z0-9.:-]+$(?!\n)"
OWNER = rf"^{_REPOSITORY_PART}(?:/{_REPOSITORY_PART}){{0,19}}$(?!\n)"
NAME = r"^(?!\.{1,2}$)(?!.*\.git$)[A-Za-z0-9._-]+$(?!\n)"
SLUG = (
    rf"^{_REPOSITORY_PART}(?:/{_REPOSITORY_PART}){{0,19}}"
    r"/(?!\.{1,2}$)(?!.*\.git$)[A-Za-z0-9._-]+$(?!\n)"
)
BRANCH = r"^(?!refs/heads/)[^\x00-\x1f\x7f-\x9f]+$(?!\n)"
COMMIT = r"^(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})$(?!\n)"
COMMIT_START = r"^[0-9a-fA-F]{7,64}$(?!\n)"
UUID = r"^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$(?!\n)"
TOKEN_ID = r"^[0-9A-Za-z]{10}$(?!\n)"
LINE = r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)"
# As below, without characters that turn or hide a part of the text.
VISIBLE_LINE = (
    r"^[^\S\x00-\x1f\x7f-\x9f\u2028\u2029]*"
    r"[^\s\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
    r"[^\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]*$(?!\n)"
)
# White space first, then anything else, so that no text is tried in many ways.
NOT_BLANK_LINE = r"^[^\S\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$(?!\n)"
_BUT_NEWLINE = r"\x00-\x09\x0b-\x1f\x7f-\x9f"
NOT_BLANK_LINES = rf"^[^\S{_BUT_NEWLINE}]*[^\s{_BUT_NEWLINE}][^{_BUT_NEWLINE}]*$(?!\n)"
MESSAGE = r"^msg_[0-9a-f]{32}$(?!\n)"
TARGET_PATTERN = r"^[^*\x00-\x1f\x7f-\x9f]*\*?$(?!\n)"
_PLACE = r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?"
_LETTER = r"[A-Za-z0-9._~:/@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"


def _address(letter: str) -> str:
    """Return the pattern behind the place of an address: path, query, fragment of such letters."""
    return rf"(?:/(?:{letter})*)?(?:\?(?:{letter}|\?)*)?(?:#(?:{letter}|\?)*)?"


# As RFC 3986 has it, so that what is stored can be answered as a URI.
WEB = rf"^(?:https?://{_PLACE}{_address(_LETTER)})?$(?!\n)"
TEMPLATE = rf"^(?=.*[{{]id[}}])https://{_PLACE}{_address(_LETTER + '|[{]id[}]')}$(?!\n)"
LANDING = r"^(?:#[1-9][0-9]{0,8}|[0-9a-f]{10,64})$(?!\n)"
TICKET_ID = r"^[A-Za-z0-9._#/-]*$(?!\n)"
# A `*` alone would make all names one.
_PLAIN = r"[^*\x00-\x1f\x7f-\x9f]"
ONE_STAR = rf"^(?:{_PLAIN}+\*{_PLAIN}*|\*{_PLAIN}+)$(?!\n)"
JOB_CODE = r"^[^\x00-\x1f\x7f-\x9f]+=(?:[1-9]|[1-9]\d|1[01]\d|12[0-8]|failure)$(?!\n)"
REPORTER = r"^[^\x00-\x1f\x7f-\x9f]+=(?:[0-9]{1,20}|@[0-9]{1,20}|any)$(?!\n)"
# Tab and newline are the only control characters of what an author says in several lines.
LINES = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$(?!\n)"
# What any string of a body holds: NUL is refused before a field is looked at.
ANYTHING = r"^[^\x00]*$(?!\n)"
ROUNDS = r"^[PF/]+$(?!\n)"

FORMS: Mapping[str, str] = {
    HOST: "must be the name of a host, as `github.com`",
    OWNER: "must be letters, digits, `.`, `_` and `-`, with `/` between groups",
    NAME: "must be letters, digits, `.`, `_` and `-`",
    SLUG: "must be an owner and a name with `/` between, as `octo/widgets`",
    BRANCH: "must be a branch's name without control characters",
    COMMIT_START: "must be the commit, or its first 7 hexadecimal digits or more",
    COMMIT: "must be the whole commit: 40 hexadecimal digits, or 64",
    LANDING: "must be `#` and the number of a pull request, or 10 hexadecimal digits or more of a "
    "commit",
    UUID: "must be a UUID, as 6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10",
    TOKEN_ID: "must be the ten letters and digits after `hgt_`",
    MESSAGE: "must be the id of a message: msg_ and 32 hexadecimal digits",
    LINE: "must be one line without control characters",
    VISIBLE_LINE: "must be one line with a visible character, and with none that hides or turns "
    "a part of the text",
    TARGET_PATTERN: "must be one line, with `*` at its end alone",
    LINES: "must hold no control characters but tab and newline",
    WEB: "must be an address of the web, as `https://tickets.example.org/7`, or empty",
    TEMPLATE: "must be an https address with `{id}` where the ticket's id stands",
    TICKET_ID: "must be letters, digits, `.`, `_`, `#`, `/` and `-`",
    JOB_CODE: "must be a pattern of jobs, `=`, and an exit code from 1 to 128 or the word "
    "`failure`, as `unit*=8`",
    ONE_STAR: "must be one line with exactly one `*` and something beside it, as `seed *`",
    ROUNDS: "must be `P` and `F` in the order of the runs, with `/` between processes",
    issuers.ISSUER: issuers.FORM,
    REPORTER: "must be `NAME=` and the number of an App, `@` and that of an account, or `any`, "
    "as `unit=15368`",
}
"""Pattern of a field → what must be sent, for people."""

Model = TypeVar("Model", bound="Request")
Word = TypeVar("Word", bound=StrEnum)

Spelling = Callable[[str], str]
"""From a field's name in our code to the one that an endpoint takes and answers."""


def as_named(name: str) -> str:
    """The spelling of endpoints that name their fields as our code does (docs/design/http.md 1)."""
    return name


def _as_read(schema: JsonSchemaValue, model: type[BaseModel]) -> None:
    """State in the schema what is refused: other fields, unless the request ignores them."""
    if issubclass(model, Request) and model.ignores_unknown:
        del schema["additionalProperties"]


# A name by itself, because the mypy plugin mistrusts alias generators of models that are
# constructed by keyword; these are only ever validated.
SPELLED_AS_THE_API = ConfigDict(
    defer_build=True,
    alias_generator=to_camel,
    extra="forbid",
    frozen=True,
    json_schema_extra=_as_read,
    regex_engine="python-re",
    strict=True,
)


class Request(BaseModel):
    """A request body: API spelling by alias, never changed.

    Unknown fields, also in objects in it, are refused, or with `ignores_unknown` kept to be listed.
    """

    model_config = SPELLED_AS_THE_API
    spelled: ClassVar[Spelling] = staticmethod(to_camel)
    ignores_unknown: ClassVar[bool] = False
    _ignored: tuple[FieldError, ...] = PrivateAttr(())

    @property
    def ignored(self) -> tuple[FieldError, ...]:
        """The unknown fields that were sent, at most 50, by place."""
        return self._ignored

    @classmethod
    def faults_of_names(cls, _body: Mapping[str, object]) -> tuple[FieldError, ...]:
        """Return what is wrong with the names at the top of the body, besides unknown ones."""
        return ()


class SnakeRequest(Request):
    """A request body of the endpoints whose fields are in snake_case."""

    model_config = ConfigDict(alias_generator=None)
    spelled: ClassVar[Spelling] = staticmethod(as_named)


def read(model: type[Model], body: Mapping[str, object]) -> Model:
    """The body as the model. Raises Malformed with every faulty field, at most 50."""
    faults = model.faults_of_names(body)
    request, found = _validated(model, body)
    strange = [fault for fault in found if fault["type"] == unknown.FOUND]
    if model.ignores_unknown and strange and not faults and len(strange) == len(found):
        request, found = _validated(
            model, unknown.without(body, [fault["loc"] for fault in strange])
        )
    if model.ignores_unknown:
        found = [fault for fault in found if fault["type"] != unknown.FOUND]
    told = {each.field for each in faults}
    faults += tuple(
        each for fault in found[:ERRORS_MAX] if (each := _finding(fault, model)).field not in told
    )
    if faults or request is None:
        raise refused(faults[:ERRORS_MAX])
    if strange:
        ignored = (_finding(fault, model) for fault in strange[:ERRORS_MAX])
        request._ignored = tuple(sorted(ignored, key=lambda each: each.field))
    return request


def _validated(
    model: type[Model], body: Mapping[str, object]
) -> tuple[Model | None, list[ErrorDetails]]:
    try:
        return model.model_validate(body), []
    except ValidationError as invalid:
        return None, invalid.errors(include_url=False, include_context=True)


def refused(found: tuple[FieldError, ...]) -> Malformed:
    """The answer to faulty fields; unknown names give it their own code."""
    code = "unknown_field" if any(each.code == "unknown" for each in found) else "invalid_field"
    shown = "; ".join(map(said, found[:3]))
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return Malformed(f"{shown}{more}.", code=code, errors=found)


def said(fault: FieldError) -> str:
    """Return a faulty field, what is wrong with it, and what was probably meant."""
    meant = "" if fault.did_you_mean is None else f" (did you mean `{fault.did_you_mean}`?)"
    return f"{fault.field} {fault.message}{meant}"


CODES: Mapping[str, tuple[str, str]] = {
    "missing": ("missing", "is required"),
    "greater_than_equal": ("range", "must be at least {ge}"),
    "less_than_equal": ("range", "must be at most {le}"),
    "string_too_short": ("length", "must have at least {min_length} characters"),
    "string_too_long": ("length", "must have at most {max_length} characters"),
    "too_short": ("length", "must have at least {min_length} items"),
    "too_long": ("length", "must have at most {max_length} items"),
    "string_pattern_mismatch": ("format", "{form}"),
    "string_type": ("type", "must be a string"),
    "bool_type": ("type", "must be true or false"),
    "int_type": ("type", "must be an integer"),
    "float_type": ("type", "must be a number"),
    "datetime_type": ("type", "must be a string"),
    "is_instance_of": ("type", "must be a string"),
    "literal_error": ("enum", "must be {expected}"),
    "finite_number": ("range", "must be finite"),
    "list_type": ("type", "must be an array"),
    "tuple_type": ("type", "must be an array"),
    "model_type": ("type", "must be an object"),
    "model_attributes_type": ("type", "must be an object"),
}
"""pydantic's finding → our code and sentence. Findings of our own validators carry both."""

ADVICE: Mapping[str, Callable[[str], str | None]] = {
    "/repo/host": lambda given: (
        "must be the host alone: `github.com`" if re.search(r"[:/]/|/", given) else None
    ),
    "/repo/name": lambda given: (
        "must be without the group path, which belongs in `owner`"
        if "/" in given
        else "must be without `.git`"
        if given.endswith(".git")
        else None
    ),
    "/targetBranch": lambda given: (
        "must be without `refs/heads/`" if given.startswith("refs/heads/") else None
    ),
    "/holdId": lambda _: "must be the id of a hold, as `headgate queue show` lists it",
}
"""What to send instead, by field, when its form is wrong."""


def _finding(fault: ErrorDetails, model: type[Request]) -> FieldError:
    if fault["type"] != unknown.FOUND:
        return field_error(fault)
    *parents, name = fault["loc"]
    shown = str(name)[: unknown.NAME_SHOWN_MAX]
    meant = unknown.nearest(shown, unknown.known_at(model, parents))
    return FieldError(pointer(*parents, shown), "unknown", "is no field of this request", meant)


def field_error(fault: ErrorDetails) -> FieldError:
    """One of pydantic's findings as ours, other than that of an unknown field."""
    place = pointer(*fault["loc"])
    context = fault.get("ctx", {})
    known = CODES.get(fault["type"])
    if known is None:
        suggestion = context.get("did_you_mean")
        code = fault["type"] if fault["type"] in OWN_CODES else "type"
        return FieldError(place, code, fault["msg"], suggestion)
    code, text = known
    form = FORMS.get(context.get("pattern", ""), "")
    empty = context.get("min_length") == 1
    message = "must not be empty" if empty else text.format(**context, form=form)
    advice = ADVICE.get(place)
    given = fault["input"]
    if advice is not None and code == "format" and isinstance(given, str):
        message = advice(given) or message
    return FieldError(place, code, message)


OWN_CODES = frozenset({"type", "range", "length", "format", "enum", "read_only", "unknown"})


def pointer(*parts: str | int) -> str:
    """The JSON Pointer of a place (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def wrong(code: str, message: str, did_you_mean: str | None = None) -> PydanticCustomError:
    """A finding of our own; `code` is one of docs/design/http.md 7."""
    suggestion = {} if did_you_mean is None else {"did_you_mean": did_you_mean}
    return PydanticCustomError(code, "{message}", {**suggestion, "message": message})


def whole(value: object) -> object:
    """`12.0` is the integer 12; everything else is left to the type."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value


def whole_or_digits(value: object) -> object:
    """As `whole`, and a string of digits is its number."""
    if type(value) is str:
        if _DIGITS.fullmatch(value) is None:
            raise wrong("type", "must be an integer or a string of digits")
        return int(value)
    return whole(value)


def one_of(words: type[Word], *shown_only: Word) -> Callable[[object], object]:
    """A reader of an enum in any letter case; `shown_only` members cannot be sent."""
    accepted = {word.value.lower(): word for word in words if word not in shown_only}

    def word_in(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, str):
            raise wrong("type", "must be a string")
        found = accepted.get(value.lower())
        if found is None:
            raise unknown_word(value, tuple(word.value for word in accepted.values()))
        return found

    return word_in


def unknown_word(given: str, words: tuple[str, ...], more: str = "") -> PydanticCustomError:
    """The finding that a value is none of the words, nor `more`, with the nearest of them."""
    return wrong("enum", f"must be one of {', '.join(words)}{more}", unknown.nearest(given, words))


def isolate(value: object) -> object:
    """The one policy of a batching rule, in any letter case."""
    if isinstance(value, str) and value.upper() == "ISOLATE":
        return "ISOLATE"
    raise wrong("enum", "must be ISOLATE")


def _moment(value: object) -> object:
    """A time of RFC 3339 with an offset, cut to milliseconds (docs/design/http.md 3)."""
    if value is None or isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise wrong("type", "must be a string")
    match = _MOMENT.fullmatch(value)
    if match is None:
        raise wrong("format", "must be a time with an offset, as 2026-03-02T14:02:19Z")
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    milliseconds = int((match[7] or "").ljust(3, "0")[:3])
    if second == 60:
        second, milliseconds = 59, 999
    try:
        local = datetime(year, month, day, hour, minute, second, milliseconds * 1000, tzinfo=UTC)
        at = local - _offset(match)
    except (ValueError, OverflowError):
        raise wrong("range", "is no time that exists") from None
    if at.year < 1970:
        raise wrong("range", "must lie in the years 1970 to 9999")
    return at


def _offset(match: re.Match[str]) -> timedelta:
    if match[8] is None:
        return timedelta()
    hours, minutes = int(match[9]), int(match[10])
    if hours > 23 or minutes > 59:
        raise ValueError("no such offset")
    span = timedelta(hours=hours, minutes=minutes)
    return span if match[8] == "+" else -span


# Decimal digits of 1 to 4294967295, ten at most.
NUMBER_DIGITS = (
    r"^(?!0+$)(?:[0-9]{1,9}|[0-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}"
    r"|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}"
    r"|42949672[0-8][0-9]|429496729[0-5])$"
)
# Without the last days at both ends, so that no offset leads out of the years allowed.
TIME_FORM = r"^(?:197[1-9]|19[89][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-"

Integer = Annotated[int, BeforeValidator(whole)]
PullRequestNumber = Annotated[
    int,
    BeforeValidator(whole_or_digits),
    Field(ge=1, le=NUMBER_MAX),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": NUMBER_MAX},
                {"type": "string", "pattern": NUMBER_DIGITS},
            ],
            "examples": [482],
        }
    ),
]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": TIME_FORM}),
]
CommitSha = Annotated[
    str, Field(pattern=COMMIT, examples=["a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"])
]
Reason = Annotated[str, Field(max_length=500, pattern=LINES)]


class Repository(Request):
    """Which repository (docs/design/http.md 4); existence is another matter."""

    ignores_unknown = True

    host: Annotated[str, Field(max_length=255, pattern=HOST)]
    """Host of the repository, as in its address. For example `github.com`."""
    owner: Annotated[str, Field(min_length=1, max_length=255, pattern=OWNER)]
    """Owner of the repository; with nested groups the whole path. For example `octo`."""
    name: Annotated[str, Field(min_length=1, max_length=100, pattern=NAME)]
    """Name of the repository, without `.git`. For example `widgets`."""

    @cached_property
    def ref(self) -> RepoRef:
        """As operations name it; a host has no letter case."""
        return RepoRef(self.host.lower(), self.owner, self.name)


class Awaited(NamedTuple):
    """The wait of a caller: another version than `since`, for so many seconds."""

    since: str
    seconds: int


class MayWait(Request):
    """A read that may wait until its answer has another version (docs/design/http.md 12)."""

    since_version: Annotated[str, Field(min_length=1, max_length=64, pattern=LINES)] | None = None
    """Answer when `recordVersion` is another one than this. For example
    `3f1c7b640a524b408a35c4bb`.
    """
    wait_for: Annotated[int, BeforeValidator(whole), Field(ge=1, le=WAIT_MAX_S)] | None = None
    """Seconds to wait at most; 30 unless sent."""

    def awaited(self) -> Awaited | None:
        """Return what to wait for, None to answer at once: a first read knows no version."""
        if self.since_version is None:
            return None
        return Awaited(self.since_version, self.wait_for or WAIT_MAX_S)


class Named(Request):
    """A request about one queue: a repository and its target branch."""

    repo: Repository
    """The repository."""
    target_branch: Annotated[str, Field(min_length=1, max_length=255, pattern=BRANCH)]
    """The branch of the queue, without `refs/heads/`. For example `main`."""


class PullRequest(Request):
    """Which pull request."""

    ignores_unknown = True

    number: PullRequestNumber
    """Number of the pull request."""


class PullRequestWithHead(PullRequest):
    """Which pull request, and optionally the head the caller means."""

    sha: CommitSha | None = None
    """The head that you mean; another one is refused."""

    def head(self) -> Sha | None:
        """The head in lower case, None when not sent."""
        return None if self.sha is None else Sha(self.sha.lower())


class NamedPullRequest(Named):
    """A request about one pull request of one queue."""

    pr: PullRequest
    """The pull request."""


# A name git itself would refuse (git help check-ref-format) cannot have a branch, so nobody
# needs to ask the provider about it.
_GIT_REFUSES = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[/-]|[/.]$|(?:^|/)\.|\.lock(?:/|$)|^@$"
)


def git_would_refuse(branch: str) -> bool:
    """Return whether no git repository can hold a branch of this name."""
    return _GIT_REFUSES.search(branch) is not None
