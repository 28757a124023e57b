"""Bodies of the queue endpoints."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from service.errors import FieldError
from service.http.models import common
from service.http.models.answers.common import Answer
from service.http.models.common import Integer, Moment, Named, Reason, Request
from service.http.models.shared import Uuid
from service.mergequeue.api.models.answers import queues as answers
from service.mergequeue.engine.config import SETTINGS, ConfigValue
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import setting_types
from service.mergequeue.reasons.record import HoldScope

NULLABLE = frozenset({"requiredStatuses", "stateReason"})
"""Where an update takes null for a value (docs/design/http.md 2)."""

# The largest integer that JSON may hold here (docs/design/limits.md 2).
VERSION_MAX = 2**63 - 1

_SETTABLE = [each for each in QueueState if each is not QueueState.SWITCHING_MODES]
State = Annotated[
    QueueState,
    BeforeValidator(common.one_of(QueueState, QueueState.SWITCHING_MODES)),
    WithJsonSchema({"type": "string", "enum": [each.value for each in _SETTABLE]}),
]


class QueueChange(Named):
    """What `/createQueue` and `/updateQueue` share besides the settings; all is optional."""

    state: State | None = None
    """The state to set."""
    state_reason: Reason | None = None
    """Why it is paused or draining; people see it. For example `release freeze`."""

    def settings(self) -> dict[str, ConfigValue]:
        """Return the settings that were sent, by field name of `QueueConfig`, in its types."""
        return {
            name: setting_types.value_of(getattr(self, name))
            for name in self.model_fields_set & SETTINGS.keys()
            if getattr(self, name) is not None
        }


@setting_types.takes_settings
class CreateQueue(QueueChange):
    """`/createQueue`: null is the same as absent."""

    ignores_unknown = True


def _as_updated(schema: JsonSchemaValue) -> None:
    """State what `faults_of_names` refuses in the schema."""
    for name, field in schema["properties"].items():
        if name not in NULLABLE and "anyOf" in field:
            (taken,) = (each for each in field["anyOf"] if each != {"type": "null"})
            del field["anyOf"]
            field.update(taken)


@setting_types.takes_settings
class UpdateQueue(QueueChange):
    """`/updateQueue`: null is an error where it is no value.

    A misspelled setting would be lost: unlike others that it is like, it refuses unknown names.
    """

    model_config = ConfigDict(json_schema_extra=_as_updated)

    branch: str | None = None
    """May only repeat `targetBranch`. For example `main`."""
    delete_required_statuses: bool | None = None
    """Whether to drop `requiredStatuses`, so that the rules of the branch decide again."""
    expected_version: Annotated[Integer, Field(ge=0, le=VERSION_MAX)] | None = None
    """Refuse the update if the queue has another `version`."""

    @classmethod
    def faults_of_names(cls, body: Mapping[str, object]) -> tuple[FieldError, ...]:
        """Return errors for read-only names, and for null without a meaning."""
        known = _aliases(cls)
        return tuple(
            fault
            for name, value in body.items()
            if (fault := _fault_of_name(name, value, body, known)) is not None
        )

    def settings(self) -> dict[str, ConfigValue]:
        """Return the settings that were sent; no override of required statuses is None."""
        changes = super().settings()
        if "required_statuses" in self.model_fields_set or self.delete_required_statuses:
            changes.setdefault("required_statuses", None)
        return changes

    def contradicts_itself(self) -> bool:
        """Return whether the override of required statuses is both set and dropped."""
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
    if value is None and name in known and name not in NULLABLE | {"repo", "targetBranch"}:
        return FieldError(pointer, "type", "must not be null")
    return None


def _aliases(model: type[Request | Answer]) -> frozenset[str]:
    """Return the names of the fields of the model, as the API spells them."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


SHOWN_ONLY = (_aliases(answers.QueueCreated) | _aliases(answers.QueueWithEntries)) - _aliases(
    UpdateQueue
)
"""Fields of answers that no request sets."""


class GetQueue(Named, common.MayWait):
    """`/getQueue`."""

    ignores_unknown = True


class DeleteQueue(Named):
    """`/deleteQueue`."""

    ignores_unknown = True


class AddQueueHold(Named):
    """`/addQueueHold`."""

    text: Annotated[Reason, Field(min_length=1)]
    """Why the queue is held; people see it. For example `release freeze`."""
    scope: Annotated[HoldScope, BeforeValidator(common.one_of(HoldScope))] | None = None
    """What it stops; both unless sent."""
    until: Moment | None = None
    """When it ends by itself."""


class ReleaseQueueHold(Named):
    """`/releaseQueueHold`."""

    hold_id: Uuid
    """The hold: `id` of one in `holds` of the queue."""
    text: Annotated[Reason, Field(min_length=1)]
    """Why it is lifted. For example `the release is out`."""
