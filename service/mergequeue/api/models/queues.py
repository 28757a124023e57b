"""Bodies of the queue endpoints (API.md 5).

Ranges come from `mergequeue/engine/config.py`, so that the engine and the schema cannot disagree.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue

from service.errors import FieldError
from service.http.models import common
from service.http.models.common import Integer, Moment, Named, Reason, Request
from service.mergequeue.engine import config
from service.mergequeue.engine.config import (
    BatchingRule,
    BatchSizing,
    ConfigValue,
    ConfirmFailures,
    ForkPolicy,
    Hedging,
    Mode,
    OptimizationMode,
    QueueConfig,
    TestBranchConstruction,
    Toggle,
)
from service.mergequeue.engine.reasons import HoldScope
from service.mergequeue.engine.states import QueueState
from service.vocabulary import MergeMethod

SHOWN_ONLY = frozenset(
    {
        "version",
        "stateChangedAt",
        "stateChangedBy",
        "targetMode",
        "testBranchKind",
        "testBranchKindReason",
        "holds",
        "effectiveRequiredStatuses",
        "requiredStatusesSource",
        "ruleNotes",
        "settingSources",
        "links",
        "enqueuedPullRequests",
        "enqueuedPullRequestsTruncated",
        "ignoredFields",
    }
)
"""Fields of answers that no request sets."""

NULLABLE = frozenset({"requiredStatuses", "stateReason"})
"""Where an update takes null for a value (API.md 5.1)."""

# The largest integer that JSON may hold here (API.md 1.2).
VERSION_MAX = 2**63 - 1

_SETTINGS = frozenset(field.name for field in fields(QueueConfig))


def _within(name: str) -> FieldInfo:
    """The bounds of one number, as pydantic takes them."""
    least, most = config.RANGES[name]
    bounds: FieldInfo = Field(ge=least, le=most)
    return bounds


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


class BatchingRuleGiven(Request):
    """One member of `batchingRules`."""

    target_pattern: Annotated[
        str, Field(min_length=1, max_length=512, pattern=common.TARGET_PATTERN)
    ]
    policy: Annotated[Literal["ISOLATE"], BeforeValidator(common.isolate)] = "ISOLATE"


Status = Annotated[str, Field(min_length=1, max_length=255, pattern=common.LINE)]
Statuses = Annotated[list[Status], Field(max_length=100), AfterValidator(_distinct)]
Logins = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100, pattern=common.LINE)]],
    Field(max_length=100),
]
Rules = Annotated[list[BatchingRuleGiven], Field(max_length=100)]
_SETTABLE = [each for each in QueueState if each is not QueueState.SWITCHING_MODES]
State = Annotated[
    QueueState,
    BeforeValidator(common.one_of(QueueState, QueueState.SWITCHING_MODES)),
    WithJsonSchema({"type": "string", "enum": [each.value for each in _SETTABLE]}),
]


class QueueSettings(Named):
    """What both `/createQueue` and `/updateQueue` set; every field is optional."""

    state: State | None = None
    state_reason: Reason | None = None
    mode: Annotated[Mode, BeforeValidator(common.one_of(Mode))] | None = None
    concurrency: Annotated[Integer, _within("concurrency")] | None = None
    bisection_concurrency: Annotated[Integer, _within("bisection_concurrency")] | None = None
    testing_timeout_minutes: Annotated[Integer, _within("testing_timeout_minutes")] | None = None
    can_optimistically_merge: bool | None = None
    pending_failure_depth: Annotated[Integer, _within("pending_failure_depth")] | None = None
    batch: bool | None = None
    batching_max_wait_time_minutes: (
        Annotated[Integer, _within("batching_max_wait_time_minutes")] | None
    ) = None
    batching_min_size: Annotated[Integer, _within("batching_min_size")] | None = None
    batch_sizing: Annotated[BatchSizing, BeforeValidator(common.one_of(BatchSizing))] | None = None
    create_prs_for_testing_branches: bool | None = None
    comments_enabled: bool | None = None
    commands_enabled: bool | None = None
    status_check_enabled: bool | None = None
    label_commands_enabled: bool | None = None
    state_labels_enabled: bool | None = None
    extension_enabled: bool | None = None
    enqueueing_label: (
        Annotated[str, Field(min_length=1, max_length=50, pattern=common.LINE)] | None
    ) = None
    required_statuses: Statuses | None = None
    direct_merge_mode: Annotated[Toggle, BeforeValidator(common.one_of(Toggle))] | None = None
    optimization_mode: (
        Annotated[OptimizationMode, BeforeValidator(common.one_of(OptimizationMode))] | None
    ) = None
    merge_method: Annotated[MergeMethod, BeforeValidator(common.one_of(MergeMethod))] | None = None
    test_branch_construction_mode: (
        Annotated[TestBranchConstruction, BeforeValidator(common.one_of(TestBranchConstruction))]
        | None
    ) = None
    not_ready_timeout_hours: Annotated[float, _within("not_ready_timeout_hours")] | None = None
    allowed_bot_submitters: Logins | None = None
    batching_rules: Rules | None = None
    skipped_statuses_pass: bool | None = None
    check_start_timeout_minutes: (
        Annotated[Integer, _within("check_start_timeout_minutes")] | None
    ) = None
    fork_policy: Annotated[ForkPolicy, BeforeValidator(common.one_of(ForkPolicy))] | None = None
    auto_retry_limit: Annotated[Integer, _within("auto_retry_limit")] | None = None
    flaky_knowledge_enabled: bool | None = None
    max_excused_failures: Annotated[Integer, _within("max_excused_failures")] | None = None
    result_reuse_enabled: bool | None = None
    confirm_failures: (
        Annotated[ConfirmFailures, BeforeValidator(common.one_of(ConfirmFailures))] | None
    ) = None
    hedging: Annotated[Hedging, BeforeValidator(common.one_of(Hedging))] | None = None
    hedge_threshold: Annotated[float, _within("hedge_threshold")] | None = None
    full_suite: bool | None = None

    def settings(self) -> dict[str, ConfigValue]:
        """The settings that were sent, by field name of `QueueConfig`, in its types."""
        return {
            name: _in_config(getattr(self, name))
            for name in self.model_fields_set & _SETTINGS
            if getattr(self, name) is not None
        }


def _in_config(value: object) -> ConfigValue:
    """A value as `QueueConfig` holds it: lists become tuples."""
    if not isinstance(value, list):
        return value  # type: ignore[return-value]
    if value and isinstance(value[0], BatchingRuleGiven):
        return tuple(BatchingRule(rule.target_pattern, rule.policy) for rule in value)
    return tuple(value)


class CreateQueue(QueueSettings):
    """`/createQueue`: null is the same as absent; unknown names are kept to be listed."""

    model_config = ConfigDict(extra="allow")

    def ignored(self) -> tuple[str, ...]:
        """Names at the top of the body that set nothing, sorted."""
        return tuple(sorted(self.model_extra or ()))


def _as_updated(schema: JsonSchemaValue) -> None:
    """What `faults_of_names` refuses, as a schema says it."""
    schema["additionalProperties"] = False
    for name, field in schema["properties"].items():
        if name not in NULLABLE and "anyOf" in field:
            (taken,) = (each for each in field["anyOf"] if each != {"type": "null"})
            del field["anyOf"]
            field.update(taken)


class UpdateQueue(QueueSettings):
    """`/updateQueue`: unknown names are errors; null is one where it is no value."""

    model_config = ConfigDict(json_schema_extra=_as_updated)

    branch: str | None = None
    delete_required_statuses: bool | None = None
    expected_version: Annotated[Integer, Field(ge=0, le=VERSION_MAX)] | None = None

    @classmethod
    def faults_of_names(cls, body: Mapping[str, object]) -> tuple[FieldError, ...]:
        """Unknown and shown names, and null where it means nothing."""
        known = _aliases(cls)
        return tuple(
            fault
            for name, value in body.items()
            if (fault := _fault_of_name(name, value, body, known)) is not None
        )

    def settings(self) -> dict[str, ConfigValue]:
        """As sent; no override of required statuses is None."""
        found = super().settings()
        nulled = "required_statuses" in self.model_fields_set and self.required_statuses is None
        if nulled or self.delete_required_statuses:
            found["required_statuses"] = None
        return found

    def says_reason(self) -> bool:
        """Whether `stateReason` was sent, null included."""
        return "state_reason" in self.model_fields_set

    def contradicts_itself(self) -> bool:
        """Whether the override of required statuses is both set and dropped."""
        return bool(self.delete_required_statuses) and "required_statuses" in self.model_fields_set


def _fault_of_name(
    name: str, value: object, body: Mapping[str, object], known: frozenset[str]
) -> FieldError | None:
    pointer = common.pointer(name)
    if name == "branch":
        if value == body.get("targetBranch"):
            return None
        return FieldError(pointer, "read_only", "may only repeat `targetBranch`")
    if name in SHOWN_ONLY:
        return FieldError(pointer, "read_only", "is shown only and cannot be set")
    if name not in known:
        meant = common.nearest(name, tuple(sorted(known)))
        return FieldError(pointer, "unknown", "is no setting of a queue", meant)
    if value is None and name not in NULLABLE | {"repo", "targetBranch"}:
        return FieldError(pointer, "type", "must not be null")
    return None


def _aliases(model: type[Request]) -> frozenset[str]:
    """The names that a body of this model may carry, as the API spells them."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


class GetQueue(Named):
    """`/getQueue`."""


class DeleteQueue(Named):
    """`/deleteQueue`."""


class AddQueueHold(Named):
    """`/addQueueHold`."""

    text: Annotated[Reason, Field(min_length=1)]
    scope: Annotated[HoldScope, BeforeValidator(common.one_of(HoldScope))] | None = None
    until: Moment | None = None


class ReleaseQueueHold(Named):
    """`/releaseQueueHold`."""

    hold_id: Annotated[str, Field(pattern=common.UUID)]
    text: Annotated[Reason, Field(min_length=1)]
