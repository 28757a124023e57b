"""Faults of the rules about files, overrides and landed commits, each of which a history shows."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from service.accounts.api import auth
from service.dashboard.visitors import Visitor
from service.mergequeue.engine import inputs
from service.mergequeue.engine.applying import apply, reports
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.operations import proving, repository_files, requirements, vehicles
from service.mergequeue.operations.repository_files import Reading, Target
from service.provenance import FactKind
from service.provider.values import Commit, Merged
from service.testhealth.detector import quarantine
from service.testhealth.settings import TestSettings
from service.vocabulary import Health, Override, RepoRef, Sha

Plant = Callable[[pytest.MonkeyPatch], None]

_choose = vehicles.choose
_content_at = repository_files.content_at
_overridden = requirements._overridden
_call_fault = proving._call_fault
_proof_of = proving.proof_of
_setting_of = quarantine.setting_of


async def _content_of_head(runtime: Any, repo: RepoRef, path: str, commit: Sha) -> Any:
    """The file of the head that was pushed last."""
    head = runtime.providers[repo.host].newest_head or commit
    return await _content_at(runtime, repo, path, head)


async def _choose_by_head(runtime: Any, repo: RepoRef, branch: str, commit: Sha, by: Any) -> Any:
    """The workflow files of the head that was pushed last."""
    head = runtime.providers[repo.host].newest_head or commit
    return await _choose(runtime, repo, branch, head, by)


def _instead_of_rules(override: Any, branch: str, resolved: Any) -> Any:
    given = override if override is None else replace(override, is_from_file=False)
    return _overridden(given, branch, resolved)


def _without_settings(target: Target, _faults: Any, *contents: bytes) -> Reading:
    """What a file with a fault says: nothing."""
    return Reading(target.commit, repository_files._digest(target, *contents), {}, None, ())


def _files_not_read(draft: Draft, _one: inputs.WorkflowsChanged) -> None:
    reports.workflows_changed(draft, inputs.WorkflowsChanged(None))


def _all_proved(action: Land, merged: Merged) -> proving.Proved:
    """What the provider calls merged is what was tested."""
    landed = tuple((step, merged.commit, step.tree) for step in action.steps)
    return proving.Proved(landed, None)


def _back_is_landed(action: Land, merged: Merged) -> Any:
    return _all_proved(action, merged) if merged.chain == () else _proof_of(action, merged)


def _strangers_below(action: Land, merged: Merged) -> Any:
    """Commits of others between the tested base and the landing are left out."""
    chain = merged.chain or ()
    last = next((at for at, one in enumerate(chain) if one.sha == merged.commit), None)
    if last is None:
        return _proof_of(action, merged)
    chain = chain[: last + len(action.steps)]
    below = replace(action.expected_tip, sha=chain[-1].parents[0])
    return _proof_of(replace(action, expected_tip=below), replace(merged, chain=chain))


def _any_tree(action: Land, own: tuple[Commit, ...]) -> Any:
    tested = zip(own[-len(action.steps) :], action.steps, strict=False)
    trees = {commit.sha: step.tree for commit, step in tested}
    as_tested = tuple(replace(one, tree=trees.get(one.sha, one.tree)) for one in own)
    return _call_fault(action, as_tested)


def _never_is_nothing(settings: TestSettings, override: Override, status: Health) -> Any:
    is_never = override is Override.NEVER_QUARANTINE
    return _setting_of(settings, Override.UNSPECIFIED if is_never else override, status)


def _setting(of: object, name: str, new: object) -> Plant:
    return lambda patch: patch.setattr(of, name, new)


FAULTS: Mapping[FactKind, Mapping[str, Plant]] = {
    FactKind.OVERRIDE: {
        "every token sets overrides": _setting(auth, "check_role", lambda *_: None),
        "everybody who can read sets overrides": _setting(Visitor, "may", lambda *_: True),
        "an expired override counts": _setting(
            quarantine, "in_force", lambda override, *_: override
        ),
        "a test that is never quarantined is flaky": _setting(
            quarantine, "setting_of", _never_is_nothing
        ),
    },
    FactKind.WORKFLOW_FILE: {
        "files of a head choose the test branches": _setting(vehicles, "choose", _choose_by_head),
        "what the files exclude may be skipped": lambda patch: patch.setitem(
            apply.APPLIERS, inputs.WorkflowsChanged, _files_not_read
        ),
    },
    FactKind.REPOSITORY_FILE: {
        "the file of a head counts": _setting(repository_files, "content_at", _content_of_head),
        "names of the file replace those of the rules": _setting(
            requirements, "_overridden", _instead_of_rules
        ),
        "a file with a fault says nothing": _setting(
            repository_files, "_broken", _without_settings
        ),
    },
    FactKind.LANDED_COMMIT: {
        "what is called merged is what was tested": _setting(proving, "proof_of", _all_proved),
        "a landing that was moved back has landed": _setting(proving, "proof_of", _back_is_landed),
        "commits of others may be below": _setting(proving, "proof_of", _strangers_below),
        "every tree may land": _setting(proving, "_call_fault", _any_tree),
    },
}
