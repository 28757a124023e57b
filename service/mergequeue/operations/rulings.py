"""Add to the facts of pull requests what rules of entry and their descriptions come to.

See docs/design/rules.md 1. Only pull requests of a queue with rules, and those whose description
says something, cost anything here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import Seen
from service.mergequeue.entry_rules import judging
from service.mergequeue.operations import descriptions
from service.mergequeue.operations.descriptions import Lines
from service.provider.errors import Gone, Refused
from service.provider.values import PullRequest
from service.runtime import Runtime
from service.vocabulary import Blocker, BlockerCode, PullRequestState, RepoRef

LEVELS_MAX = 10
"""How far dependencies of dependencies are followed, to find those that go round."""

FOLLOWED_MAX = 200
"""Pull requests read for that."""

Known = dict[int, PullRequest | None]


async def with_rulings(
    runtime: Runtime,
    repo: RepoRef,
    config: QueueConfig,
    pulls: Sequence[PullRequest],
    plain: Mapping[int, Facts],
) -> dict[int, Facts]:
    """Return the facts of these pull requests with what rules come to."""
    lines = {pull.number: descriptions.lines_of(pull.body) for pull in pulls}
    known = await _followed(runtime, repo, pulls, lines)
    found = dict(plain)
    for pull in pulls:
        said = lines[pull.number]
        if pull.state is not PullRequestState.OPEN:
            continue
        waits = tuple(_dependencies(pull.number, said, known))
        facts = plain[pull.number]
        facts = replace(facts, blockers=(*facts.blockers, *waits, *said.faults))
        seen = _seen(pull, facts, said)
        paths = await _paths(runtime, repo, config, pull)
        ruled = judging.judged(config.rules, seen, paths, runtime.clock.now())
        found[pull.number] = replace(facts, seen=seen, ruled=ruled)
    return found


def _seen(pull: PullRequest, facts: Facts, said: Lines) -> Seen:
    return Seen(
        number=pull.number,
        title=pull.title,
        author=pull.author,
        branch=pull.head_branch,
        base=pull.base_branch,
        labels=tuple(sorted(pull.labels)),
        approvals=tuple(sorted(pull.approved_by)),
        draft=pull.draft,
        fork=pull.is_fork,
        auto_merge=pull.auto_merge,
        depends_on=facts.depends_on,
        not_before=said.not_before,
    )


async def _paths(
    runtime: Runtime, repo: RepoRef, config: QueueConfig, pull: PullRequest
) -> tuple[str, ...] | None:
    """Return the changed paths if a rule asks for them; None if they are not known."""
    if not judging.reads_paths(config.rules):
        return None
    try:
        changed = await runtime.providers[repo.host].changed_files(repo, pull.number)
    except (Gone, Refused):
        return None  # of this one alone: the others of the sweep go on
    is_of_head = changed.head in (None, pull.head_sha)
    return changed.paths if changed.complete and is_of_head else None


async def _followed(
    runtime: Runtime, repo: RepoRef, pulls: Sequence[PullRequest], lines: Mapping[int, Lines]
) -> Known:
    """Read the pull requests on which these depend, and those on which they do."""
    known: Known = {pull.number: pull for pull in pulls}
    wanted = {number for said in lines.values() for number in said.depends_on}
    left = len(wanted) + FOLLOWED_MAX
    for _ in range(LEVELS_MAX):
        new = sorted(wanted - known.keys())[:left]
        if not new:
            break
        left -= len(new)
        read = await runtime.providers[repo.host].pull_requests(repo, new)
        known |= read
        wanted = {
            number
            for pull in read.values()
            if pull is not None and pull.state is PullRequestState.OPEN
            for number in descriptions.lines_of(pull.body).depends_on
        }
    return known


def _dependencies(number: int, said: Lines, known: Known) -> Iterator[Blocker]:
    """Yield a blocker for the open ones together, and one for each that cannot be merged first."""
    still_open = []
    for each in said.depends_on:
        other = known.get(each)
        if each == number:
            yield Blocker(BlockerCode.DEPENDENCY_LOST, "itself")
        elif other is None:
            yield Blocker(BlockerCode.DEPENDENCY_LOST, f"unknown {each}")
        elif other.state is PullRequestState.CLOSED:
            yield Blocker(BlockerCode.DEPENDENCY_LOST, f"closed {each}")
        elif other.state is PullRequestState.OPEN:
            if _leads_to(number, other, known):
                yield Blocker(BlockerCode.DEPENDENCY_LOST, f"round {each}")
            still_open.append(str(each))
    if still_open:
        yield Blocker(BlockerCode.DEPENDS_ON, " ".join(still_open))


def _leads_to(number: int, start: PullRequest, known: Known) -> bool:
    """Return whether the dependencies of a pull request lead to this number."""
    met, left = {start.number}, [start]
    while left:
        for each in descriptions.lines_of(left.pop().body).depends_on:
            other = known.get(each)
            if each == number:
                return True
            if each not in met and other is not None and other.state is PullRequestState.OPEN:
                met.add(each)
                left.append(other)
    return False
