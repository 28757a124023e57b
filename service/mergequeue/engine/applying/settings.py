"""Change the settings of a queue: by a command, or by the repository's file.

Rules: docs/design/engine.md 6. What runs now keeps the settings that it began with.
"""

from service.mergequeue.engine import config
from service.mergequeue.engine.config import Mode, QueueConfig, SettingSource
from service.mergequeue.engine.inputs import Configure, RepositoryFileRead
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import QueueConfigured, Refused, Tell
from service.mergequeue.engine.planning import modes
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import holds, leaving, readiness, shares
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import ActorKind

TEST_BRANCHES = "create_prs_for_testing_branches"
FILE = "repository_file"
"""The name under which a change of what is known of the file is reported."""

_PROVIDER_QUEUE = frozenset({HoldReason.PROVIDER_QUEUE})
_INVALID = frozenset({HoldReason.CONFIG_INVALID, HoldReason.METHOD_DENIED})


def sources(queue: MergeQueue) -> dict[str, SettingSource]:
    """Return where the value of each setting comes from, by field name.

    A value of the queue that nobody named is its own as well, unless it is the default: some follow
    from others when a queue is created.
    """
    own, default = queue.own_config or queue.config, QueueConfig()
    found = {
        name: SettingSource.DEFAULT
        if getattr(own, name) == getattr(default, name)
        else SettingSource.API
        for name in config.SETTINGS
    }
    found |= dict.fromkeys(queue.chosen, SettingSource.API)
    return found | dict.fromkeys(_names(queue), SettingSource.FILE)


def configure(draft: Draft, one: Configure) -> Refused | None:
    """Change settings, unless a person names one that the repository's file sets."""
    wrong = config.out_of_range(one.changes)
    if wrong is not None:
        text = f"{wrong} cannot be {one.changes[wrong]!r}"
        return Refused(Reason.INVALID_VALUE, text, field=wrong)
    is_system = one.actor.kind is ActorKind.SYSTEM
    fixed = next((name for name in one.changes if name in _names(draft.queue)), None)
    if fixed is not None and not is_system:
        return Refused(Reason.INVALID_VALUE, f"the repository's file sets {fixed}", field=fixed)
    queue = draft.queue
    chosen = queue.chosen if is_system else _chosen(queue, one)
    own = queue.own_config and config.changed(queue.own_config, one.changes)
    if (own, chosen) != (queue.own_config, queue.chosen):
        draft.put_queue(replace(queue, own_config=own, chosen=chosen))
    reason = one.test_branch_reason if TEST_BRANCHES in one.changes else queue.test_branch_reason
    wanted = config.changed(_with_wanted_mode(queue), one.changes)
    _adopt(draft, wanted, reason)
    holds.release_all(draft, _INVALID, "the settings were changed")
    return None


def repository_file_read(draft: Draft, one: RepositoryFileRead) -> None:
    """Take the settings of the file and of nothing else; one with faults changes no setting."""
    queue = draft.queue
    own = queue.own_config or _with_wanted_mode(queue)
    if one.settings is not None:
        kept = own if one.settings else None
        draft.put_queue(replace(queue, own_config=kept))
        reason = one.test_branch_reason or queue.test_branch_reason
        _adopt(draft, config.changed(own, one.settings), reason)
        holds.release_all(draft, _INVALID, "the repository's file was changed")
    if draft.queue.file != one.file:
        draft.put_queue(replace(draft.queue, file=one.file))
        draft.record(QueueConfigured((FILE,)))


def _names(queue: MergeQueue) -> tuple[str, ...]:
    return () if queue.file is None else queue.file.names


def _chosen(queue: MergeQueue, one: Configure) -> tuple[str, ...]:
    """Return the settings set on the queue; no override of required statuses is none of them."""
    chosen = {*queue.chosen, *one.changes}
    if one.changes.get("required_statuses", ()) is None:
        chosen.discard("required_statuses")
    return tuple(sorted(chosen))


def _with_wanted_mode(queue: MergeQueue) -> QueueConfig:
    """Return the settings with the mode to which the queue is switching."""
    return replace(queue.config, mode=queue.target_mode or queue.config.mode)


def _adopt(draft: Draft, wanted: QueueConfig, test_branch_reason: str | None) -> None:
    """Change the settings in force; the mode changes when no run depends on the old one."""
    queue, old = draft.queue, draft.queue.config
    new = replace(wanted, mode=old.mode)
    changed = tuple(name for name in config.SETTINGS if getattr(old, name) != getattr(new, name))
    if test_branch_reason != queue.test_branch_reason:
        changed = tuple(dict.fromkeys((*changed, TEST_BRANCHES)))
    if changed:
        draft.put_queue(replace(queue, config=new, test_branch_reason=test_branch_reason))
        draft.record(QueueConfigured(changed))
        leaving.try_again(draft, draft.entries.values())
    if "fair_shares" in changed:
        shares.deal_anew(draft)
    if "shadow" in changed:
        _change_shadow(draft)
    if "merge_method" in changed or "land_tested_commits" in changed:
        draft.touched.update(draft.entries)
        _set_aside_unchecked(draft)
    if "undone_work" in changed:
        draft.touched.update(draft.entries)
    modes.ask(draft, Mode(wanted.mode))


def _change_shadow(draft: Draft) -> None:
    """Judge readiness anew; a queue that leaves its shadow says where its pull requests are."""
    draft.touched.update(draft.entries)
    if draft.queue.config.shadow:
        holds.release_all(draft, _PROVIDER_QUEUE, "the queue works beside the provider's own")
        return
    for entry in draft.entries.values():
        draft.request(Tell(entry.pr, entry.id, entry.state, entry.reason))


def _set_aside_unchecked(draft: Draft) -> None:
    """Set aside whoever lacks a check on its own head that the new merge method needs.

    No fact about it has changed that could change back, so it does not keep its place for a time.
    """
    placed = [entry for entry in draft.entries.values() if entry.rank is not None]
    for entry in sorted(placed, key=lambda entry: entry.rank or 0):
        fresh = draft.entries[entry.pr]
        is_new = Reason.CHECK_MISSING not in fresh.unmet
        lacks = Reason.CHECK_MISSING in readiness.unmet_now(draft, fresh)
        if is_new and lacks and not leaving.is_landing(draft, fresh):
            leaving.set_aside(draft, fresh, Reason.CHECK_MISSING)
