"""The settings of a queue as fields of a form: their texts, and what a form changes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, get_type_hints

import orjson
from pydantic.alias_generators import to_camel

from service.errors import FieldError, Malformed
from service.http.models import common, unknown
from service.http.models import settings as models
from service.mergequeue.engine.applying.settings import sources
from service.mergequeue.engine.config import (
    SETTINGS,
    BatchingRule,
    ConfigValue,
    QueueConfig,
    SettingSource,
)
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.operations import repository_file
from service.mergequeue.operations.repository_file import BranchSettings
from service.mergequeue.operations.setting_types import (
    BATCHING_RULES,
    CONFLICT_RULES,
    ENTRY_RULES,
)
from service.mergequeue.wording import settings
from service.mergequeue.wording.settings import Sentence
from service.settings import Template, short_json
from service.text.phrases import Phrase
from service.vocabulary import ConflictRule

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Testing": (
        *("mode", "concurrency", "bisection_concurrency", "testing_timeout_minutes"),
        *("check_start_timeout_minutes", "required_statuses", "skipped_statuses_pass"),
        *("optional_statuses", "head_only_statuses", "status_reporters"),
        *("full_suite", "hedging", "hedge_threshold"),
        *("create_prs_for_testing_branches", "test_branch_construction_mode"),
    ),
    "Batches": (
        *("batch", "batching_min_size", "batching_max_wait_time_minutes", "batch_sizing"),
        "batching_rules",
    ),
    "Failures": (
        *("can_optimistically_merge", "pending_failure_depth", "confirm_failures"),
        *("auto_retry_limit", "optimization_mode", "result_reuse_enabled"),
        *("flaky_knowledge_enabled", "max_excused_failures", "early_failures"),
    ),
    "Merging": (
        "merge_method",
        "land_tested_commits",
        "conflict_rules",
        "commit_title",
        "commit_body",
        "delete_branch",
        "direct_merge_mode",
        "shadow",
    ),
    "After the merge": ("red_target", "red_target_checks", "red_target_runs"),
    "Pull requests": (
        *("not_ready_timeout_hours", "fork_policy", "sensitive_paths"),
        *("allowed_bot_submitters", "open_entries_per_submitter", "ci_minutes_per_submitter"),
        "comments_enabled",
        *("commands_enabled", "foreign_commands_enabled"),
        *("status_check_enabled", "label_commands_enabled"),
        *("enqueueing_label", "state_labels_enabled", "fair_shares", "rules"),
        *("conflict_radar", "undone_work", "undone_work_days", "generated_paths"),
    ),
}
"""Every setting that has an effect, in the order of the page."""

BEFORE = "before-"
"""Begins the name of the hidden field with the text that a setting had on the page."""

NONE = "[]"
"""The form of a list that is empty on purpose, where no list means something else."""

_USUAL = settings.sentences(QueueConfig())
KINDS: Mapping[str, object] = get_type_hints(QueueConfig)
NULLABLE = models.nullable(QueueConfig)
FIELDS: Mapping[str, str] = {to_camel(name): name for name in SETTINGS}
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


class Told(NamedTuple):
    """A sentence about a queue, and where its settings come from.

    `file` is the path of the repository's file that sets one of them, else empty. `is_changed`: a
    queue with the default settings does something else.
    """

    text: Phrase
    file: str
    is_set_here: bool
    is_changed: bool


@dataclass(frozen=True, slots=True)
class SettingField:
    """A setting as a field: `options` None: a text, which `is_long` gives several lines.

    `file` is the path of the repository's file that sets it, else empty.
    """

    name: str
    label: str
    meaning: str
    text: str
    default: str
    is_set_here: bool
    file: str
    options: tuple[str, ...] | None
    is_number: bool
    is_long: bool

    def word(self, text: str) -> str:
        """Return a text of the field as people read it: `Merge commit`, `none`."""
        if self.options is not None:
            return settings.word(text)
        return text or "none"

    @property
    def hint(self) -> str:
        """Return how its text is written, if that is not plain."""
        kind = KINDS[FIELDS[self.name]]
        if not _is_list(kind):
            return "Empty: none." if FIELDS[self.name] in NULLABLE else ""
        form = ", as JSON" if kind == ENTRY_RULES else ""
        return f"One a line{form}.{' Empty: not set.' if FIELDS[self.name] in NULLABLE else ''}"


def told(value: MergeQueue) -> Mapping[str, tuple[Told, ...]]:
    """Return what a queue does in sentences, by the group of their settings."""
    found: dict[str, list[Told]] = {title: [] for title in GROUPS}
    group_of = {name: title for title, names in GROUPS.items() for name in names}
    for each in settings.sentences(value.config):
        found[group_of[each.names[0]]].append(_told(value, each))
    return {title: tuple(each) for title, each in found.items()}


def _told(value: MergeQueue, sentence: Sentence) -> Told:
    fields = [field_of(value, name) for name in sentence.names]
    return Told(
        sentence.text,
        next((each.file for each in fields if each.file), ""),
        any(each.is_set_here for each in fields),
        sentence not in _USUAL,
    )


def field_of(value: MergeQueue, name: str) -> SettingField:
    """Return a setting of a queue, by field name of `QueueConfig`."""
    kind, setting = KINDS[name], SETTINGS[name]
    source = sources(value)[name]
    is_filed = source is SettingSource.FILE and value.file is not None
    is_text_of_lines = isinstance(setting.bounds, Template) and not setting.bounds.is_line
    return SettingField(
        name=to_camel(name),
        label=settings.label(name),
        meaning=LINK.sub(r"\1", setting.meaning),
        text=text_of(name, getattr(value.config, name)),
        default=text_of(name, getattr(QueueConfig(), name)),
        is_set_here=source is SettingSource.API,
        file=repository_file.path_of(to_camel(name), value.file) if is_filed and value.file else "",
        options=_options(kind),
        is_number=kind in (int, float),
        is_long=is_text_of_lines or _is_list(kind),
    )


def _is_list(kind: object) -> bool:
    return "tuple" in str(kind)


def _options(kind: object) -> tuple[str, ...] | None:
    if kind is bool:
        return ("true", "false")
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return tuple(each.value for each in kind)
    return None


def text_of(name: str, value: ConfigValue) -> str:
    """Return a value as its field holds it."""
    if isinstance(value, tuple):
        if not value:
            return NONE if name in NULLABLE else ""
        return "\n".join(map(_line_of, value))
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode().removesuffix(".0")


def _line_of(element: str | BatchingRule | ConflictRule | EntryRule) -> str:
    if isinstance(element, BatchingRule):
        return element.target_pattern
    return element if isinstance(element, str) else short_json(element)


def changes_of(given: Mapping[str, str], before: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the settings whose text differs from the text before, by name of `QueueConfig`.

    Both have names as the API spells them; without a text before, a setting is changed. Raises
    Malformed, which names each wrong field.
    """
    texts = {
        name: text
        for name in FIELDS
        if name in given and (text := _clean(given[name])) != _clean(before.get(name, "\0"))
    }
    unset = {FIELDS[name] for name, text in texts.items() if not text} & NULLABLE
    body = {name: _json_of(name, text) for name, text in texts.items() if FIELDS[name] not in unset}
    changes = {**common.read(BranchSettings, body).settings(), **dict.fromkeys(unset)}
    return {name: changes[name] for name in SETTINGS if name in changes}


def check_names(given: Mapping[str, str]) -> None:
    """Raise Malformed for a name that is no setting."""
    for name in given:
        if name not in FIELDS:
            meant = unknown.nearest(name, tuple(FIELDS))
            hint = f" Did you mean {meant}?" if meant else ""
            fault = FieldError(f"/{name[:100]}", "unknown", "is not a setting of a queue")
            raise Malformed(f"{name[:100]} is not a setting of a queue.{hint}", errors=(fault,))


def _clean(text: str) -> str:
    return "\n".join(text.splitlines()).strip() if text != "\0" else text


def _json_of(name: str, text: str) -> object:
    kind = KINDS[FIELDS[name]]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if kind is bool:
        return {"true": True, "false": False}.get(text, text)
    if kind == BATCHING_RULES:
        return [{"targetPattern": line} for line in lines]
    if kind in (CONFLICT_RULES, ENTRY_RULES):
        return [_decoded(line) for line in lines]
    if _is_list(kind):
        return [] if text == NONE else lines
    if kind in (int, float):
        return _decoded(text)
    return text


def _decoded(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
