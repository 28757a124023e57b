"""The repository's file: what it may say, and what is wrong with it.

Everything here follows from `QueueConfig`: the check, the JSON Schema and the names. Rules:
docs/design/engine.md 6; for people: docs/how-to/repository-file.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import ErrorDetails

from service.http import schemas
from service.http.models import common, unknown
from service.http.models.common import Request
from service.mergequeue.engine.config import (
    SETTINGS,
    ConfigValue,
    QueueConfig,
)
from service.mergequeue.engine.model import FileFault, RepositoryFile
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.entry_rules import checking
from service.mergequeue.operations import setting_types
from service.repofile import document
from service.repofile.document import Document, Unreadable

PATH = ".github/headgate.yml"
TRUNK_PATH = ".trunk/trunk.yaml"
"""The path of the file whose `merge.required_statuses` count if our file lists none."""

BRANCHES_MAX = 100
FAULTS_MAX = 20

STATUSES = "required_statuses"


def _as_in_a_file(schema: JsonSchemaValue) -> None:
    """Show the defaults of a queue; a setting that is left out keeps its other value."""
    usual = QueueConfig()
    defaults = {to_camel(name): getattr(usual, name) for name in SETTINGS if name != STATUSES}
    for name, shape in schema.get("properties", {}).items():
        shape.pop("default", None)
        if name in defaults:
            shape["default"] = orjson.loads(orjson.dumps(defaults[name]))


@setting_types.names_settings
class BranchSettings(Request):
    """Settings of the queue of one branch."""

    model_config = ConfigDict(json_schema_extra=_as_in_a_file)

    def settings(self) -> dict[str, ConfigValue]:
        """Return the settings that are written, by field name of `QueueConfig`, in its types."""
        return {name: setting_types.value_of(getattr(self, name)) for name in self.model_fields_set}


BranchPattern = Annotated[str, Field(min_length=1, max_length=255, pattern=common.TARGET_PATTERN)]


class FileBody(Request):
    """The repository's file for a merge queue of Headgate."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[
        Literal[1],
        Field(description="the version of this format"),
        # Python takes `true` for 1; the schema and other readers do not.
        BeforeValidator(lambda value: None if isinstance(value, bool) else value),
    ]
    queues: Annotated[
        dict[BranchPattern, BranchSettings],
        Field(
            max_length=BRANCHES_MAX,
            description="branch, or the beginning of branch names and `*` → settings of its queue",
        ),
    ] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """A file: the settings for each branch or pattern, and its faults, by line.

    With faults `sections` is empty. `document` says the line of a value.
    """

    sections: Mapping[str, Mapping[str, ConfigValue]] = field(default_factory=dict)
    faults: tuple[FileFault, ...] = ()
    document: Document = Document(None, {})  # noqa: RUF009 - it does not change

    def section_for(self, branch: str) -> str | None:
        """Return the key that counts for a branch: its name, else the longest pattern."""
        if branch in self.sections:
            return branch
        fitting = [
            key for key in self.sections if key.endswith("*") and branch.startswith(key[:-1])
        ]
        return max(fitting, key=len, default=None)

    def settings_for(self, branch: str) -> Mapping[str, ConfigValue]:
        """Return the settings for the queue of a branch; empty if the file has none."""
        section = self.section_for(branch)
        return {} if section is None else self.sections[section]

    def fault_at(self, branch: str, setting: str, message: str) -> FileFault:
        """Return a fault of a setting that the file has for a branch."""
        section = self.section_for(branch)
        place = ("queues", section or branch, to_camel(setting))
        line = self.document.line_of(place)
        return FileFault(PATH, line, _dotted(place), f"`{_dotted(place)}` {message}")


def check(content: bytes) -> Checked:
    """Return what a file says, or everything that is wrong with it, at most 20 faults."""
    return checked(document.outcome(content))


def checked(read: Document | Unreadable) -> Checked:
    """Return what a file says that was read, or everything that is wrong with it."""
    if isinstance(read, Unreadable):
        return Checked(faults=(FileFault(PATH, read.line, "", read.message),))
    try:
        body = FileBody.model_validate({} if read.value is None else read.value)
    except ValidationError as invalid:
        found = invalid.errors(include_url=False, include_context=True)
        return Checked(faults=_sorted(_fault(read, each) for each in found))
    sections = {branch: each.settings() for branch, each in body.queues.items()}
    idle = _sorted(_idle_rules(read, body))
    return Checked(faults=idle) if idle else Checked(sections, (), read)


def _idle_rules(read: Document, body: FileBody) -> Iterator[FileFault]:
    """Yield a fault for each rule without an effect."""
    for branch, each in body.queues.items():
        for number, rule in enumerate(each.settings().get("rules") or ()):  # type: ignore[arg-type]
            if isinstance(rule, EntryRule) and checking.does_nothing(rule):
                place = ("queues", branch, "rules", number)
                text = "has no `priority`, `enter` or `waitFor`, so it does nothing. Write one."
                name = _dotted(place)
                yield FileFault(PATH, read.line_of(place), name, f"`{name}` {text}")


NO_VALUE = "has no value. Write one, or remove the line."
NOT_AN_OBJECT = "must contain keys with values, as `version: 1`"


def _sorted(faults: Iterable[FileFault]) -> tuple[FileFault, ...]:
    return tuple(sorted(faults, key=lambda each: each.line or 0))[:FAULTS_MAX]


def _fault(read: Document, error: ErrorDetails) -> FileFault:
    """Return one of pydantic's findings with its line."""
    place = tuple(each for each in error["loc"] if each != "[key]")
    return FileFault(PATH, read.line_of(place), _dotted(place), _message(place, error))


def _message(place: document.Path, error: ErrorDetails) -> str:
    name = f"`{_dotted(place)}`" if place else "The file"
    kind = error["type"]
    if kind == "extra_forbidden":
        model, what = _where(place)
        meant = unknown.nearest(str(place[-1]), _names_of(model))
        hint = f"Did you mean `{meant}`?" if meant else f"Remove it. {SEE}"
        return f"{name} {what}. {hint}"
    if kind == "missing":
        todo = "Write `version: 1` on the first line." if place == ("version",) else "Add it."
        return f"{name} is missing. {todo}"
    if kind == "literal_error":
        return f"{name} must be 1."
    if kind in {"dict_type", "model_type", "model_attributes_type"} and error["input"] is not None:
        return f"{name} {NOT_AN_OBJECT}."
    if error["input"] is None:
        return f"{name} {NO_VALUE}"
    found = common.field_error(error)
    meant = f" Did you mean `{found.did_you_mean}`?" if found.did_you_mean else ""
    return f"{name} {found.message}.{meant}"


def _where(place: document.Path) -> tuple[type[BaseModel], str]:
    """Return the model that an unknown key is in, and what the key is not."""
    if len(place) > 3:  # rules of entry have a finding of their own
        return setting_types.BatchingRuleWritten, "is not a key of a batching rule"
    if len(place) == 3:
        return BranchSettings, "is not a setting of a queue"
    return FileBody, "is not a key of this file"


SEE = "`headgate config schema` has all names."


def _names_of(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(each.alias or name for name, each in model.model_fields.items())


def _dotted(place: document.Path) -> str:
    """Return `queues.main.batchingRules[0].policy`."""
    parts = [f"[{each}]" if isinstance(each, int) else f".{each[:100]}" for each in place]
    return "".join(parts).removeprefix(".")


def trunk_statuses(
    read: Document | Unreadable,
) -> tuple[tuple[str, ...] | None, tuple[FileFault, ...]]:
    """Return `merge.required_statuses` of a Trunk file, None if it has none, and its faults."""
    if isinstance(read, Unreadable):
        return None, (FileFault(TRUNK_PATH, read.line, "", read.message),)
    merge = read.value.get("merge") if isinstance(read.value, dict) else None
    given = merge.get(STATUSES) if isinstance(merge, dict) else None
    if given is None:
        return None, ()
    try:
        names = BranchSettings.model_validate({to_camel(STATUSES): given}).settings()[STATUSES]
    except ValidationError as invalid:
        return None, _sorted(_trunk_fault(read, each) for each in invalid.errors())
    return names, ()  # type: ignore[return-value]


def _trunk_fault(read: Document, error: ErrorDetails) -> FileFault:
    place = ("merge", STATUSES, *error["loc"][1:])
    message = f"`{_dotted(place)}` {common.field_error(error).message}."
    return FileFault(TRUNK_PATH, read.line_of(place), _dotted(place), message)


def schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of the file."""
    parts = schemas.build([FileBody], "#/$defs/{model}")
    whole = parts.pop(FileBody.__name__)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": PATH, **whole, "$defs": parts}


def encoded_schema() -> bytes:
    """Return the JSON Schema as it is served and printed."""
    return orjson.dumps(schema(), option=orjson.OPT_INDENT_2) + b"\n"


def path_of(name: str, file: RepositoryFile) -> str:
    """Return the path of the file that has a setting; `name` as the API spells it."""
    is_required = name == to_camel(STATUSES) and file.required_path is not None
    return file.required_path if is_required and file.required_path else PATH


def api_names(names: Iterable[str]) -> list[str]:
    """Return names of settings as the API and the file spell them, in the order of the settings."""
    chosen = frozenset(names)
    return [to_camel(each.name) for each in fields(QueueConfig) if each.name in chosen]
