"""Bodies of messages about tests (API.md 11.1). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from service.notifications.messages import Message, common_fields, message_of, time_text
from service.vocabulary import Actor, Health, Override, RepoRef

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CaseTold:
    """A test as messages show it, in its organization; texts are empty when missing."""

    organization: str
    repo: RepoRef
    id: str
    name: str
    parent: str
    classname: str
    file: str
    variant: str
    owners: tuple[str, ...]
    quarantined: bool
    html_url: str


@dataclass(frozen=True, slots=True)
class OverrideTold:
    """A change of what is said of a test's quarantine."""

    previous: Override
    updated: Override
    reason: str
    actor: Actor
    at: datetime
    expires_at: datetime | None


def status_changed(
    told: CaseTold, previous: Health, status: tuple[Health, str], at: datetime
) -> Message:
    """`test_case.status_changed`; `status` is the present value with its reason."""
    value, reason = status
    change = {
        "previous_status": previous.value,
        "current_status": {"value": value.value, "reason": reason, "timestamp": time_text(at)},
    }
    return _of_case(told, "status_changed", at, {"status_change": change})


def quarantining_changed(told: CaseTold, change: OverrideTold) -> Message:
    """`test_case.quarantining_setting_changed`."""
    expires_at = change.expires_at
    fields = {
        "actor": {"kind": change.actor.kind.value, "login": change.actor.login or None},
        "reason": change.reason,
        "timestamp": time_text(change.at),
        "previous_quarantining_setting": change.previous.value,
        "updated_quarantining_setting": change.updated.value,
        "expires_at": None if expires_at is None else time_text(expires_at),
    }
    name = "quarantining_setting_changed"
    return _of_case(told, name, change.at, {"quarantine_setting_changed": fields})


def ticket_linked(told: CaseTold, ticket: str | None, at: datetime) -> Message:
    """`test_case.ticket_linked`; no ticket: it is linked to none any more."""
    shown = None if ticket is None else {"html_url": ticket}
    return _of_case(told, "ticket_linked", at, {"ticket": shown})


def _of_case(told: CaseTold, word: str, at: datetime, fields: Json) -> Message:
    name = f"test_case.{word}"
    case = {
        "id": told.id,
        "name": told.name,
        "parent": told.parent or None,
        "classname": told.classname or None,
        "file_path": told.file or None,
        "variant": told.variant,
        "codeowners": list(told.owners),
        "quarantined": told.quarantined,
        "html_url": told.html_url,
    }
    return message_of(
        name,
        at,
        {
            **common_fields(name, told.organization, at),
            "repository": {
                "host": told.repo.host,
                "owner": told.repo.owner,
                "name": told.repo.name,
            },
            "test_case": case,
            **fields,
        },
    )
