"""Sentences before they are written out: our words, with marked places for other things.

A template holds words of our own only. Whatever is put in for `{}` keeps its kind, and a
bare text is taken for somebody else's: it becomes a code span in Markdown.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.text import times
from service.vocabulary import Actor, ActorKind, Channel, RequiredSource, Sha

NAMES_SHOWN_MAX = 5
"""Checks, files and the like in one sentence (docs/design/comments.md 6)."""

PULLS_SHOWN_MAX = 20
"""Pull requests in one sentence."""

SHA_SHOWN = 7

# What GitHub lets in as a login; one with GH-12 in it would be read as a reference to issue 12.
_LOGIN = re.compile(r"(?!.*gh-\d)[a-z0-9][a-z0-9_-]{0,38}", re.IGNORECASE)


# `{name|words}` and a text between backticks; `[clause|other clause]` around them.
_PLACE = re.compile(r"\{(?P<name>\w+)(?:\|(?P<words>[^}]*))?\}|`(?P<code>[^`]*)`")
_CLAUSE = r"(?:\{[^}]*\}|[^\]|{])*"
_OPTIONAL = re.compile(rf"\[({_CLAUSE})(?:\|({_CLAUSE}))?\]")


@dataclass(frozen=True, slots=True)
class Code:
    """A text of somebody else, or a command to type."""

    text: str


@dataclass(frozen=True, slots=True)
class Commit(Code):
    """A commit of the repository, by its first digits; pages link to it."""

    sha: str


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request by number."""

    number: int


@dataclass(frozen=True, slots=True)
class Page:
    """A name with its page elsewhere; written as the name alone where the page is no link."""

    text: "Code | str"
    url: str


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant; `text` is how it is written in UTC."""

    at: datetime
    text: str


Part = str | Code | Pull | Page | Moment


@dataclass(frozen=True, slots=True)
class Phrase:
    """Parts in order; a `str` among them is our own words."""

    parts: tuple[Part, ...] = ()

    def __add__(self, other: "Phrase") -> "Phrase":
        return Phrase(self.parts + other.parts)


class Unknown(LookupError):
    """A place of a template outside its optional clauses has no value."""


Argument = str | int | Code | Pull | Page | Moment | Phrase
"""The values that may be put into a template; a `str` counts as foreign."""


def phrase(template: str, *arguments: Argument) -> Phrase:
    """The template with each `{}` replaced in order; as many arguments as places."""
    first, *rest = template.split("{}")
    parts: list[Part] = [first]
    for argument, words in zip(arguments, rest, strict=True):
        parts.extend(_parts_of(argument))
        parts.append(words)
    return Phrase(tuple(part for part in parts if part != ""))


def filled(template: str, fill: Callable[[str], Argument | None]) -> Phrase:
    """Return the template with its places filled.

    `{name}` is `fill(name)`; a value that is None or empty is not known, and `{name|words}` has
    our own words then. A text between backticks is a command or a name to type. Of `[clause|other]`
    the clause is shown if each of its places is known, else the other one, which may be left out.
    """
    parts: list[Part] = []
    end = 0
    for optional in _OPTIONAL.finditer(template):
        parts += _filled(template[end : optional.start()], fill)
        clause, other = optional.groups("")
        try:
            parts += _filled(clause, fill)
        except Unknown:
            parts += _filled(other, fill)
        end = optional.end()
    parts += _filled(template[end:], fill)
    return Phrase(tuple(parts))


def _filled(template: str, fill: Callable[[str], Argument | None]) -> tuple[Part, ...]:
    """Return the parts of a template without optional clauses. Raises Unknown."""
    arguments: list[Argument] = []
    for place in _PLACE.finditer(template):
        code, words = place["code"], place["words"]
        argument = fill(place["name"]) if code is None else Code(code)
        if argument is None or argument == Phrase():
            if words is None:
                raise Unknown(place["name"])
            argument = phrase(words)
        arguments.append(argument)
    return phrase(_PLACE.sub("{}", template), *arguments).parts


def joined(phrases: Sequence[Phrase], between: str = " ") -> Phrase:
    """The phrases in order with our own words between them; empty ones are left out."""
    parts: list[Part] = []
    for each in phrases:
        if not each.parts:
            continue
        if parts:
            parts.append(between)
        parts.extend(each.parts)
    return Phrase(tuple(parts))


def capitalized(clause: Phrase) -> Phrase:
    """The clause with a capital, where it begins with our words."""
    parts = list(clause.parts)
    if parts and isinstance(parts[0], str):
        parts[0] = parts[0][:1].upper() + parts[0][1:]
    return Phrase(tuple(parts))


def sentence(clause: Phrase) -> Phrase:
    """The clause with a capital and a full stop."""
    parts = capitalized(clause).parts
    ends = parts and isinstance(parts[-1], str) and parts[-1].endswith((".", "!", "?"))
    return Phrase((*parts, *(() if ends or not parts else (".",))))


def unlinked(clause: Phrase) -> Phrase:
    """The same without links to pages, as a heading shows it."""
    return Phrase(tuple((part.text if isinstance(part, Page) else part) for part in clause.parts))


def names(texts: Sequence[str], last: str = "and") -> Phrase:
    """At most five names, then `and 3 more`."""
    return listed([Phrase((Code(text),)) for text in texts], NAMES_SHOWN_MAX, last)


def pages(pairs: Sequence[tuple[str, str]]) -> Phrase:
    """Names with their pages, at most five."""
    return listed([Phrase((Page(Code(name), url),)) for name, url in pairs], NAMES_SHOWN_MAX)


def pulls(numbers: Sequence[int], last: str = "and") -> Phrase:
    """Pull requests in the order given, at most twenty."""
    return listed([Phrase((Pull(number),)) for number in numbers], PULLS_SHOWN_MAX, last)


def few(numbers: Sequence[int]) -> Phrase:
    """At most five pull requests, then `and 3 more`: those that share a slot may be many."""
    return listed([Phrase((Pull(pr),)) for pr in numbers], NAMES_SHOWN_MAX)


def stacked(target: str, numbers: Sequence[int]) -> Phrase:
    """Return what a test is built on: `main`, `main and #1`, `main, #1 and #2`."""
    ahead = [Phrase((Pull(number),)) for number in numbers]
    return listed([phrase("{}", target), *ahead], 1 + PULLS_SHOWN_MAX)


def listed(items: Sequence[Phrase], shown_max: int, last: str = "and") -> Phrase:
    """`a`, `a and b`, `a, b and c`; beyond the limit the rest is counted."""
    shown = list(items[:shown_max])
    if len(items) > shown_max:
        shown.append(phrase("{} more", len(items) - shown_max))
    if len(shown) < 2:
        return joined(shown)
    return joined([joined(shown[:-1], ", "), shown[-1]], f" {last} ")


def quoted(text: str) -> Code:
    """Return what somebody said, without the full stop that our own sentence brings."""
    return Code(text.rstrip(" .\r\n") or text)


def short(tree: Sha | str) -> Code:
    """The first seven digits of a tree."""
    return Code(tree[:SHA_SHOWN])


def commit(sha: Sha | str) -> Commit:
    """A commit by its first seven digits."""
    return Commit(sha[:SHA_SHOWN], sha)


def moment(at: datetime, now: datetime) -> Moment:
    """An instant as a time of day, with the date if that is not today's."""
    return Moment(at, times.clock_time(at, now))


def login(name: str) -> Phrase:
    """An account by its name, without `@`: it is spoken of, not called."""
    return Phrase((name,) if _LOGIN.fullmatch(name) else (Code(name),))


def mention(name: str) -> Phrase:
    """An account that is to be notified; a name that cannot be a person's is only spoken of."""
    return Phrase((f"@{name}",)) if _LOGIN.fullmatch(name) else login(name)


def actor(who: Actor) -> Phrase:
    """Return the actor as the subject of a sentence."""
    if who.channel is Channel.RULE:
        return phrase("rule {}", who.login)
    match who.kind:
        case ActorKind.PERSON | ActorKind.BOT:
            return login(who.login)
        case ActorKind.TOKEN:
            return phrase("the token {}", who.login)
        case ActorKind.SELF | ActorKind.SYSTEM:
            return phrase("Headgate")


def source(where: RequiredSource | None) -> Phrase:
    """Return where a list of required checks comes from."""
    match where:
        case RequiredSource.MERGE_INSTANCE:
            return phrase("settings of the queue")
        case RequiredSource.VENDOR_CONFIG:
            return phrase("a file of the repository")
        case RequiredSource.BRANCH_PROTECTION:
            return phrase("branch protection")
        case None:
            return phrase("found nowhere")


def are(numbers: Sequence[int]) -> str:
    """`is` for one, else `are`."""
    return "is" if len(numbers) == 1 else "are"


def counted(count: int, one: str, many: str) -> Phrase:
    """`1 PR`, `7 PRs`."""
    return phrase("{} " + (one if count == 1 else many), count)


def _parts_of(argument: Argument) -> tuple[Part, ...]:
    if isinstance(argument, Phrase):
        return argument.parts
    if isinstance(argument, bool | int):
        return (str(int(argument)),)
    return (Code(argument),) if isinstance(argument, str) else (argument,)
