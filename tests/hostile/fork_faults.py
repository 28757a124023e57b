"""Faults of the rules about commands, consents and targets, each of which a history has to show."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection

from service.http.callers import Caller
from service.mergequeue.operations import comment_commands, comments, consents, impacted_targets
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.store import consents as stored
from service.mergequeue.store import pull_requests
from service.mergequeue.store.consents import ShownHead
from service.provenance import FactKind, ProviderTime
from service.provider.signals import AskSource

Plant = Callable[[pytest.MonkeyPatch], None]

_own_upload = impacted_targets.own_upload


def _ends_nothing(session: Connection, shown: ShownHead, now: Any) -> None:
    pull_requests.remember_head(session, shown.head, shown.at, now)


def _not_after(one: ProviderTime | None, other: ProviderTime | None) -> bool:
    return one is not None and other is not None and one <= other


async def _of_named(runtime: Any, queue: Any, upload: Upload, caller: Caller) -> Upload:
    """A job is of the pull request that it names."""
    if caller.job is not None:
        caller = replace(caller, job=replace(caller.job, pr_number=upload.number))
    return await _own_upload(runtime, queue, upload, caller)


def _always(answer: object) -> Callable[..., Any]:
    async def given(*_: object) -> object:
        return answer

    return given


def _setting(of: object, name: str, new: object) -> Plant:
    return lambda patch: patch.setattr(of, name, new)


def _lets_in(source: AskSource) -> Plant:
    return lambda patch: patch.delitem(comment_commands._CHANNELS, source)


FAULTS: Mapping[FactKind, Mapping[str, Plant]] = {
    FactKind.IMPACTED_TARGETS: {
        "a token of all jobs sets targets": _setting(
            impacted_targets, "Role", SimpleNamespace(CI=None)
        ),
        "a job is of the pull request that it names": _setting(
            impacted_targets, "own_upload", _of_named
        ),
    },
    FactKind.COMMAND: {
        "everybody may submit": _setting(comments, "_denial_of", lambda *_: None),
        "every bot may submit": _setting(comments, "_is_allowed_source", lambda _: True),
    },
    FactKind.LABEL: {"a label lets a fork in": _lets_in(AskSource.LABEL)},
    FactKind.BOX: {"a box lets a fork in": _lets_in(AskSource.CHECKBOX)},
    FactKind.BUTTON: {"a button lets a fork in": _lets_in(AskSource.BUTTON)},
    FactKind.CONSENT: {
        "a consent never ends": _setting(stored, "note_shown", _ends_nothing),
        "a lost right is kept": _setting(consents, "_holds", _always(True)),
        "no file is sensitive": _setting(consents, "sensitive_files", _always(())),
        "the present base is the one that was seen": _setting(
            comment_commands, "_is_base_seen", lambda _: True
        ),
        "the present head is the one that was seen": _setting(
            comment_commands, "_is_bound", _always(True)
        ),
        "a head that came back has always been there": _setting(
            comment_commands, "_head_since", lambda _command, _head, known: known.shown_at
        ),
    },
    FactKind.TIME: {
        "the same second is before": _setting(comment_commands, "_is_before", _not_after),
    },
}
