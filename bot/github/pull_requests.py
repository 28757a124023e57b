"""Facts of pull requests: what they are, what blocks them, which files they change."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from bot.github import graphql, outcomes, reading, stacks
from bot.github.caches import Files
from bot.github.client import RepositoryClient
from bot.github.graphql import Context, Facts
from bot.github.protection import BranchRules, Protection, own_check
from bot.github.reading import Fields
from service.provider.errors import GoneKind, ProviderError, Throttled, Unavailable
from service.provider.stacks import Stack
from service.provider.values import (
    ChangedFiles,
    ListedPullRequest,
    PullRequest,
)
from service.vocabulary import (
    CODE_OWNERS,
    LAST_PUSH,
    Blocker,
    BlockerCode,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    RequiredName,
    Sha,
)

MERGEABLE_WAITS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
FILES_MAX = 3_000  # where GitHub's own list ends
# https://docs.github.com/en/actions/reference/limits: a job on a runner of GitHub's is ended after
# 6 hours. A check run that took longer has probably waited for a person.
CHECK_RUN_MAX = timedelta(hours=6)
WORKFLOWS = ".github/workflows/"
WORKFLOWS_BLOCKER = "workflows"

REVIEWS = {
    "REVIEW_REQUIRED": BlockerCode.REVIEW_REQUIRED,
    "CHANGES_REQUESTED": BlockerCode.CHANGES_REQUESTED,
}
WAITING = frozenset({CheckOutcome.RUNNING, CheckOutcome.UNKNOWN})
ADMITTED = frozenset({CheckOutcome.PASSED, CheckOutcome.SKIPPED})


class PullRequests:
    """Reads pull requests of one host; facts are never cached."""

    def __init__(self, protection: Protection, app_id: str) -> None:
        self._protection = protection
        self._app_id = app_id
        self._swept_at_once = graphql.SWEPT_MAX

    async def pull_request_now(self, client: RepositoryClient, number: int) -> PullRequest:
        """Read one pull request."""
        return await self._converted(client, await graphql.facts(client, number))

    async def pull_request(self, client: RepositoryClient, number: int) -> PullRequest:
        """Read one pull request, and again for 31 s while GitHub computes whether it merges."""
        facts = await graphql.facts(client, number)
        for wait_s in MERGEABLE_WAITS_S:
            if not is_open(facts) or facts.pull.mergeability is not Mergeability.IN_PROGRESS:
                break
            await client.clock.sleep(wait_s)
            facts = await graphql.facts(client, number)
        return await self._converted(client, facts)

    async def with_state(self, client: RepositoryClient, number: int) -> tuple[PullRequest, Facts]:
        """Read one pull request now, with GitHub's own words about it."""
        facts = await graphql.facts(client, number)
        return await self._converted(client, facts), facts

    async def pull_requests(
        self, client: RepositoryClient, numbers: Sequence[int]
    ) -> dict[int, PullRequest | None]:
        """Read many pull requests now, 50 by one call; None for one that is gone."""
        found: dict[int, PullRequest | None] = {}
        left = list(dict.fromkeys(numbers))
        while left:
            part, left = left[: self._swept_at_once], left[self._swept_at_once :]
            for number, facts in (await self._swept(client, part)).items():
                found[number] = None if facts is None else await self._converted(client, facts)
        return found

    async def changed_files(self, client: RepositoryClient, number: int) -> ChangedFiles:
        """Return old and new names of changed files; those read with the facts last 10 s."""
        kept = client.caches.files(client.repo, number, client.clock.monotonic_s())
        if kept is not None:
            return ChangedFiles(kept.paths, True, kept.deleted, kept.head, kept.base)
        return await _listed_files(client, number)

    async def open_pull_requests(
        self, client: RepositoryClient, base: str
    ) -> tuple[ListedPullRequest, ...]:
        """Return the open pull requests onto a branch."""
        listed, _ = await client.listed("/pulls", None, {"state": "open", "base": base})
        return tuple(reading.listed_pull_of(each) for each in listed)

    async def _swept(
        self, client: RepositoryClient, numbers: Sequence[int]
    ) -> dict[int, Facts | None]:
        """Read one part. After a failure the next sweep asks for half, then slowly for more.

        So a repository whose pull requests are too large for GitHub to return 50 in time is swept
        in smaller parts.
        """
        try:
            found = await graphql.facts_of_many(client, numbers)
        except Throttled:
            raise
        except Unavailable:
            self._swept_at_once = max(1, len(numbers) // 2)
            raise
        self._swept_at_once = min(self._swept_at_once + 1, graphql.SWEPT_MAX)
        return found

    async def _converted(self, client: RepositoryClient, facts: Facts) -> PullRequest:
        self._keep(client, facts)
        pull, stack, is_whole = facts.pull, None, facts.contexts_complete
        if is_open(facts):
            stack = await stacks.find(client, pull.number, pull.head_sha)
        return replace(
            pull,
            stack=stack,
            blockers=await self._blockers(client, facts, stack),
            # A report of the same name that passed may be among those that were not read.
            skipped_checks=_names_with(facts, CheckOutcome.SKIPPED) if is_whole else (),
            failed_checks=_names_with(facts, CheckOutcome.FAILED),
            own_minutes=_minutes_of_slowest(facts.contexts, self._app_id),
            own_reports=_reports_of(facts, self._app_id) if is_whole else (),
        )

    def _keep(self, client: RepositoryClient, facts: Facts) -> None:
        client.caches.keep_node(client.repo, facts.repository_node)
        if facts.base is not None:
            client.caches.keep_commit(client.repo, facts.base)
        if facts.files_complete:
            read_s = client.clock.monotonic_s()
            pull, deleted = facts.pull, facts.deleted_files
            files = Files(pull.head_sha, facts.files, read_s, deleted, pull.base_branch)
            client.caches.keep_files(client.repo, facts.pull.number, files)

    async def _blockers(
        self, client: RepositoryClient, facts: Facts, stack: Stack | None
    ) -> tuple[Blocker, ...]:
        found = list(blockers_of(facts, self._app_id))
        if is_open(facts):
            rules = await self._rules(client, facts.pull.base_branch)
            found = [_with_reviewer(each, rules) for each in found]
            found += _rule_blockers_of(facts, rules)
            stacked = None if stack is None else stacks.blocker_of(stack, facts.pull.number)
            found += [] if stacked is None else [stacked]
            if await self._is_beyond_our_right(client, facts):
                found.append(Blocker(BlockerCode.OTHER, WORKFLOWS_BLOCKER))
        return tuple(found)

    async def _rules(self, client: RepositoryClient, branch: str) -> BranchRules | None:
        try:
            return await self._protection.rules(client, branch)
        except ProviderError:
            # Rules that cannot be read stop the queue where they are asked for themselves.
            return None

    async def _is_beyond_our_right(self, client: RepositoryClient, facts: Facts) -> bool:
        """Return whether it changes workflow files that our App may not write."""
        grant = await client.github.tokens.of(client.repo)
        if grant.permissions.get("workflows") == "write":
            return False
        known = client.caches.workflows(client.repo, facts.pull.number, facts.pull.head_sha)
        if known is None:
            changed = ChangedFiles(facts.files, complete=True)
            if not facts.files_complete:
                changed = await _listed_files(client, facts.pull.number)
            known = any(path.startswith(WORKFLOWS) for path in changed.paths)
            client.caches.keep_workflows(client.repo, facts.pull.number, facts.pull.head_sha, known)
        return known


def is_open(facts: Facts) -> bool:
    """Return whether the pull request is open."""
    return facts.pull.state is PullRequestState.OPEN


def blockers_of(facts: Facts, app_id: str) -> tuple[Blocker, ...]:
    """Return why GitHub would refuse to merge it, as far as its facts alone show."""
    found: list[Blocker] = []
    if not is_open(facts):
        found.append(Blocker(BlockerCode.CLOSED))
    if facts.pull.draft:
        found.append(Blocker(BlockerCode.DRAFT))
    is_conflicting = facts.pull.mergeability is Mergeability.NOT_MERGEABLE
    if is_conflicting or facts.merge_state == "DIRTY":
        found.append(Blocker(BlockerCode.CONFLICT))
    if facts.review_decision in REVIEWS:
        found.append(Blocker(REVIEWS[facts.review_decision]))
    own = own_check(facts.pull.base_branch)
    required = (
        context
        for context in facts.contexts
        if context.is_required and context.app_id != app_id and context.name != own
    )
    return (*found, *_check_blockers(required))


def _with_reviewer(blocker: Blocker, rules: BranchRules | None) -> Blocker:
    """Return a missing review with the people who have to give it, if rules name them."""
    if blocker.code is not BlockerCode.REVIEW_REQUIRED or rules is None:
        return blocker
    if rules.needs_code_owners:
        return replace(blocker, name=CODE_OWNERS)
    return replace(blocker, name=LAST_PUSH) if rules.needs_last_push else blocker


def _rule_blockers_of(facts: Facts, rules: BranchRules | None) -> tuple[Blocker, ...]:
    """Return the blockers that follow from the rules of its branch and not from its facts alone."""
    if rules is None:
        return ()
    found: list[Blocker] = []
    if facts.has_open_thread and rules.needs_resolved_threads:
        found.append(Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED))
    found.extend(
        Blocker(BlockerCode.CHECK_MISSING, check.name)
        for check in (rules.checks if facts.contexts_complete else ())
        if not any(_may_satisfy(context, check) for context in facts.contexts)
    )
    return tuple(dict.fromkeys(found))


def _may_satisfy(context: Context, check: RequiredName) -> bool:
    """Return whether a report is of a required check; which App set a status is not shown."""
    is_of_app = check.source_id in (None, context.app_id) or not context.is_run
    return context.name == check.name and is_of_app


def _check_blockers(contexts: Iterable[Context]) -> tuple[Blocker, ...]:
    """Return one blocker per name, for the worst of its reports."""
    by_name: dict[str, list[CheckOutcome]] = {}
    for context in contexts:
        by_name.setdefault(context.name, []).append(_outcome_of(context))
    found: list[Blocker] = []
    for name, reported in by_name.items():
        worst = outcomes.worst(reported)
        if worst not in ADMITTED:
            code = BlockerCode.CHECK_PENDING if worst in WAITING else BlockerCode.CHECK_FAILING
            found.append(Blocker(code, name))
    return tuple(found)


def _names_with(facts: Facts, outcome: CheckOutcome) -> tuple[str, ...]:
    """Return the names of the head's checks that have this outcome, sorted."""
    by_name: dict[str, list[CheckOutcome]] = {}
    for context in facts.contexts:
        by_name.setdefault(context.name, []).append(_outcome_of(context))
    return tuple(
        sorted(name for name, found in by_name.items() if outcomes.worst(found) is outcome)
    )


def _reports_of(facts: Facts, app_id: str) -> tuple[Check, ...]:
    """Return the reports on the head without those of our own App.

    GitHub lists only the newest attempts here, and their suites and ids are not read.
    """
    return tuple(
        Check(
            kind=CheckKind.SUITE_RUN if each.is_run else CheckKind.STATUS,
            name=each.name,
            source_id=each.app_id,
            group="",
            id="",
            outcome=_outcome_of(each),
            raw=each.conclusion or each.status,
            url=facts.pull.url,
            account=each.account,
            author=each.author,
        )
        for each in facts.contexts
        if each.app_id != app_id
    )


def _minutes_of_slowest(contexts: Iterable[Context], app_id: str) -> float | None:
    """Return whole minutes of the slowest check run, None if there is none with both times.

    Our own check run lasts as long as the pull request waits. GitHub may show an end before the
    start (https://github.com/llvm/llvm-project/pull/130941).
    """
    durations = [
        context.completed_at - context.started_at
        for context in contexts
        if context.started_at and context.completed_at and context.app_id != app_id
    ]
    counted = [each for each in durations if timedelta(0) <= each <= CHECK_RUN_MAX]
    # Whole minutes, so that a run of the same checks again rarely changes the facts.
    return float(max(1, round(max(counted) / timedelta(minutes=1)))) if counted else None


def _outcome_of(context: Context) -> CheckOutcome:
    if context.is_run:
        return outcomes.of_run(context.status, context.conclusion, skipped_pass=True)
    return outcomes.of_state(context.status)


def _names_of(file: Fields) -> tuple[str, ...]:
    """Return the new name of a changed file and, after a rename, the old one."""
    old = file.text_or("previous_filename", None)
    return (file.text("filename"),) if old is None else (file.text("filename"), old)


async def _listed_files(client: RepositoryClient, number: int) -> ChangedFiles:
    listed, complete = await client.listed(f"/pulls/{number}/files", missing=GoneKind.PULL_REQUEST)
    found = [path for each in listed for path in _names_of(each)]
    paths = tuple(dict.fromkeys(found))
    deleted = tuple(path for each in listed if (path := _deleted_by(each)) is not None)
    heads = {_head_of(each) for each in listed}
    head = heads.pop() if len(heads) == 1 else None
    return ChangedFiles(paths, complete and len(listed) < FILES_MAX, deleted, head)


def _deleted_by(file: Fields) -> str | None:
    """Return the path that is gone after the change of a file, None if there is none."""
    match file.words("status"):
        case "removed":
            return file.text("filename")
        case "renamed":
            return file.text_or("previous_filename", None)
    return None


def _head_of(file: Fields) -> Sha | None:
    """Return the commit that the address of a changed file names, None if it names none."""
    named = parse_qs(urlsplit(file.words("contents_url")).query).get("ref", [])
    return Sha(named[0]) if len(named) == 1 else None
