"""Consents to forks: what they are given for, and whether they still hold.

Comments and the API ask the same questions (docs/design/security.md 4).
"""

from collections.abc import Sequence
from dataclasses import replace

from service import globs
from service.database.database import Tx
from service.errors import Invalid
from service.mergequeue.engine.config import ForkPolicy, QueueConfig
from service.mergequeue.engine.inputs import FactsChanged, Input
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import HeadToMerge
from service.mergequeue.store import consents as stored
from service.mergequeue.store.consents import Consent
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provider.values import ChangedFiles, PullRequest
from service.runtime import Runtime
from service.vocabulary import PullRequestState, QueueRef, RepoRef

UNKNOWN_FILES = ("*",)
"""In place of the sensitive paths if they cannot all be named: then every path may be one."""

PATHS_MAX = 100
"""Sensitive paths that a consent names; more count as unknown."""


def _sensitive_of(
    changed: ChangedFiles, pull: PullRequest, patterns: Sequence[str]
) -> tuple[str, ...]:
    """Return the sensitive paths of a change, sorted; `UNKNOWN_FILES` if they are not known.

    They must be those of this head and base: the list may be read after a push or another base.
    """
    is_of_it = changed.head == pull.head_sha and changed.base == pull.base_branch
    if not (changed.complete and is_of_it):
        return UNKNOWN_FILES
    found = sorted(
        {path for path in changed.paths if any(globs.matches_path(one, path) for one in patterns)}
    )
    return tuple(found) if len(found) <= PATHS_MAX else UNKNOWN_FILES


async def sensitive_files(
    runtime: Runtime, repo: RepoRef, pull: PullRequest, patterns: Sequence[str]
) -> tuple[str, ...]:
    """Return the sensitive paths of a pull request as just read. Usually costs no call.

    If the provider does not say of which base the files are, the base is read again after them.
    """
    provider = runtime.providers[repo.host]
    changed = await provider.changed_files(repo, pull.number)
    if changed.complete and changed.base is None:
        now = await provider.pull_request(repo, pull.number, awaits_mergeability=False)
        if (now.base_branch, now.base_changed_at) == (pull.base_branch, pull.base_changed_at):
            changed = replace(changed, base=pull.base_branch)
    return _sensitive_of(changed, pull, patterns)


async def check_fork(
    runtime: Runtime, queue: QueueRef, pull: PullRequest, config: QueueConfig
) -> None:
    """Raise Invalid(fork_needs_person) unless a person let in this head, base and its files.

    What is not a fork's or not open passes.
    """
    if not pull.is_fork or pull.state is not PullRequestState.OPEN:
        return
    if config.fork_policy is ForkPolicy.DENY:
        raise Invalid(
            f"Pull request {pull.number} comes from a fork, and the queue for {queue.branch} takes "
            "none from forks.",
            code="fork_needs_person",
        )
    head = PullRequestHead(queue.repository_id, pull.number, pull.head_sha)
    consent = await runtime.store.read(stored.find, head, pull.base_branch)
    sensitive = await sensitive_files(runtime, queue.repo, pull, config.sensitive_paths)
    if consent is not None and consent.covers(sensitive):
        return
    who = "maintain" if sensitive else "write"
    why = f" It changes {_listed(sensitive)}." if sensitive else ""
    raise Invalid(
        f"Pull request {pull.number} comes from a fork.{why} A person with {who} access must "
        f"comment `/merge --sha={pull.head_sha}` on it while its base is {pull.base_branch}.",
        code="fork_needs_person",
    )


def _listed(sensitive: Sequence[str]) -> str:
    if sensitive == UNKNOWN_FILES:
        return "files that are not all known"
    more = f" and {len(sensitive) - 1} more sensitive files" if len(sensitive) > 1 else ""
    return f"the sensitive file {sensitive[0]}{more}"


async def lost(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, steps: Sequence[HeadToMerge]
) -> list[Input]:
    """Return the loss of consents to forks that a test branch is to test.

    The rights of each person are read now. Someone who has lost the right lets nothing in.
    """
    inputs: list[Input] = []
    for step in steps:
        entry = value.entries.get(step.pr)
        if entry is None or not step.tested or not entry.facts.is_fork:
            continue
        head = PullRequestHead(queue.repository_id, step.pr, step.head)
        consent = await runtime.store.read(stored.find, head, entry.facts.base)
        is_denied = value.config.fork_policy is ForkPolicy.DENY
        if is_denied or consent is None or not await _holds(runtime, queue, consent):
            inputs.append(FactsChanged(replace(entry.facts, authorized_head=None)))
    return inputs


async def _holds(runtime: Runtime, queue: QueueRef, consent: Consent) -> bool:
    level = await runtime.providers[queue.repo.host].access(queue.repo, consent.actor)
    if level >= consent.needs:
        return True
    await runtime.store.run(_end, consent)
    return False


def _end(session: Tx, consent: Consent) -> None:
    """End a consent whose person has lost the right, unless another person has given one since."""
    present = stored.find(session, consent.head, consent.base)
    if present == consent:
        stored.end(session, consent.head.repository_id, consent.head.number)
