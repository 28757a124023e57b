"""Check the repository's file on a pull request that changes it, and report a check run there.

The check run tells what would change; it changes nothing. The head of a fork is never read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

import structlog
from pydantic.alias_generators import to_camel

from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.errors import NotFound
from service.mergequeue.engine.config import SETTINGS, ConfigValue, changed
from service.mergequeue.engine.model import FileFault, MergeQueue
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.operations import replaying, simulate, turn
from service.mergequeue.operations.replaying import Busy, Variant
from service.mergequeue.operations.repository_file import PATH, Checked
from service.mergequeue.operations.repository_files import checked_of, content_at, method_faults
from service.mergequeue.store import queues
from service.mergequeue.wording import file_checks
from service.mergequeue.wording.file_checks import Replayed, SettingChange
from service.provider.errors import Gone, NotPermitted, Suspended
from service.provider.values import CheckReport, CheckReportStatus
from service.runtime import Runtime
from service.settings import short_json
from service.vocabulary import PullRequestState, QueueRef, Sha

log = structlog.get_logger()

SPAN = timedelta(days=30)

NOT_REPLAYED = frozenset(
    {
        "required_statuses",
        "head_only_statuses",
        "status_reporters",
        "merge_method",
        "commit_title",
        "commit_body",
        "delete_branch",
        "create_prs_for_testing_branches",
        "test_branch_construction_mode",
        "skipped_statuses_pass",
        "optional_statuses",
        "comments_enabled",
        "commands_enabled",
        "foreign_commands_enabled",
        "status_check_enabled",
        "label_commands_enabled",
        "shadow",
        "extension_enabled",
        "enqueueing_label",
        "fork_policy",
        "allowed_bot_submitters",
        "red_target",
        "red_target_checks",
        "red_target_runs",
    }
)
"""Settings that a replay does not depend on."""

NO_EFFECT = "These settings do not change how long the queue takes or how many runs it needs."
NO_RULE = "no such rule"
BUSY = "Another replay is running. Try again in a minute."
NO_HISTORY = "No submission to this queue ended in the last 30 days, so there is none to replay."
TOO_LONG = (
    "The last 30 days are too long to be replayed here. `headgate simulate` can do it on another "
    "machine."
)


@dataclass(frozen=True, slots=True)
class CheckRepositoryFile:
    """The file at this head of a pull request of the repository itself is to be checked."""

    number: int
    head: Sha
    base: str


outbox.EFFECT.add(CheckRepositoryFile)


async def ask_for(
    runtime: Runtime, repository: RepositoryRecord, wanted: CheckRepositoryFile
) -> bool:
    """Note the check if the base has a queue; return whether it was noted.

    Only noted: the lane of deliveries must not wait for a replay.
    """
    return await runtime.store.run(_ask_for, repository, wanted, runtime.clock.now())


def _ask_for(
    session: Tx, repository: RepositoryRecord, wanted: CheckRepositoryFile, now: datetime
) -> bool:
    queue = queues.queue_ref(session, repository.org_id, repository.id, wanted.base)
    if queue is None:
        return False
    key = f"config/{queue.id}/{wanted.number}/{wanted.head}"
    item = OutboxItem(Lane.COLLECT, key, "check_file", wanted, next_at=now)
    outbox.append(session, repository.id, None, 0, [item])
    return True


async def check(
    runtime: Runtime, repository_id: int, wanted: CheckRepositoryFile, *, first: bool
) -> None:
    """Report a check run if the pull request changes the file; safe to repeat.

    Without access to the repository there is no report: the next push is checked again. Raises
    the provider's other errors.
    """
    try:
        await _check(runtime, repository_id, wanted, first=first)
    except (NotPermitted, Suspended, Gone) as trouble:
        # The repository's file in this pull request gets no check; the next push tries again.
        log.warning("file_not_checked", pr=wanted.number, why=trouble.message)


async def _check(
    runtime: Runtime, repository_id: int, wanted: CheckRepositoryFile, *, first: bool
) -> None:
    repository = await runtime.store.read(access.repository, repository_id)
    queue = await runtime.store.read(
        queues.queue_ref, repository.org_id, repository.id, wanted.base
    )
    if queue is None or queue.repo.host not in runtime.providers:
        return
    provider = runtime.providers[queue.repo.host]
    # One call that reads the changed files too.
    pull = await provider.pull_request(queue.repo, wanted.number, awaits_mergeability=False)
    is_current = pull.state is PullRequestState.OPEN and pull.head_sha == wanted.head
    if not is_current or pull.is_fork or pull.base_branch != wanted.base:
        return
    files = await provider.changed_files(queue.repo, wanted.number)
    if PATH not in files.paths:
        return
    value = await turn.value(runtime, queue.id)
    if value.config.shadow:
        return
    checked = await _checked(runtime, queue, wanted) or Checked()
    faults = checked.faults or method_faults(checked, queue.branch, repository.merge_methods)
    report = await _report(runtime, queue, value, replace(checked, faults=faults))
    number = f"config-{queue.id}-{wanted.number}"
    notice = replace(report, sha=wanted.head, external_id=number, first=first)
    if not (await turn.last_value(runtime, queue.id)).config.shadow:  # a replay may take long
        await provider.say(queue.repo, notice)


async def _checked(
    runtime: Runtime, queue: QueueRef, wanted: CheckRepositoryFile
) -> Checked | None:
    """Return the file at the head, None if there is none."""
    content = await content_at(runtime, queue.repo, PATH, wanted.head)
    if isinstance(content, FileFault):
        return Checked(faults=(content,))
    return None if content is None else await checked_of(runtime, queue.repo, content)


async def _report(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, checked: Checked
) -> CheckReport:
    if checked.faults:
        title = file_checks.faults_title(PATH, checked.faults)
        summary = file_checks.faults_summary(checked.faults)
        return _check_run(CheckReportStatus.FAILURE, title, summary)
    changes = _changes_by(value, checked.settings_for(queue.branch))
    shown = [
        each
        for name, new in changes.items()
        for each in _shown(to_camel(name), getattr(value.config, name), new)
    ]
    replayed = await effect(runtime, queue, value, changes)
    title = file_checks.changes_title(queue.branch, len(changes))
    summary = file_checks.changes_summary(shown, replayed)
    return _check_run(CheckReportStatus.SUCCESS, title, summary)


def _check_run(status: CheckReportStatus, title: str, summary: str) -> CheckReport:
    return CheckReport(Sha(""), file_checks.NAME, "", status, title, summary, None)


def _changes_by(value: MergeQueue, settings: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Return the settings in force that this file would change, with their new values."""
    now = value.config
    after = changed(value.own_config or now, settings)
    return {
        name: getattr(after, name)
        for name in SETTINGS
        if getattr(after, name) != getattr(now, name)
    }


async def effect(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, changes: Mapping[str, ConfigValue]
) -> Replayed | str:
    """Return the replay of the last 30 days with the changes, or why there is none."""
    found = await effects(runtime, queue, value, [changes])
    return found if isinstance(found, str) else found[0]


async def effects(
    runtime: Runtime,
    queue: QueueRef,
    value: MergeQueue,
    variants: Sequence[Variant],
    *,
    waits: bool = True,
) -> tuple[Replayed, ...] | str:
    """Return the same for each of several variants, as many as there was time for.

    Without `waits` there are none while another replay runs, unless they are known.
    """
    if not any(each.keys() - NOT_REPLAYED for each in variants):
        return NO_EFFECT
    try:
        recorded = await simulate.recorded(runtime, queue.repo, queue.branch, SPAN)
        recorded = replace(recorded, config=value.config)
        compared = await replaying.compare(runtime, recorded, variants, waits=waits)
    except NotFound:
        return NO_HISTORY
    except Busy:
        return BUSY
    if compared is None:
        return TOO_LONG
    return tuple(
        Replayed(each.submissions, asdict(each.baseline), asdict(each.changed), each.left_out)
        for each in compared
    )


def _shown(name: str, before: ConfigValue, after: ConfigValue) -> list[SettingChange]:
    """Return the change of a setting; that of rules in a row for each rule that differs."""
    if name != "rules":
        return [SettingChange(name, _text(before), _text(after))]
    old, new = _by_name(before), _by_name(after)
    changes = [
        SettingChange(
            f"rules: {rule}", _text(old.get(rule, NO_RULE)), _text(new.get(rule, NO_RULE))
        )
        for rule in {**old, **new}
        if old.get(rule) != new.get(rule)
    ]
    order = [rule for rule in old if rule in new], [rule for rule in new if rule in old]
    if order[0] != order[1]:
        changes.append(SettingChange("order of rules", *map(_text, order)))
    return changes


def _by_name(rules: ConfigValue) -> dict[str, EntryRule]:
    given = rules if isinstance(rules, tuple) else ()
    return {each.name: each for each in given if isinstance(each, EntryRule)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else short_json(value)
