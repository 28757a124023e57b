"""What a branch's rules require: rulesets and classic protection, both of them (GITHUB.md 4.3).

Not readable is never the same as "nothing required".
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cachetools import LRUCache

from bot.github import answers, paths
from bot.github.answers import Rule
from bot.github.line import Line
from bot.github.wire import Answer
from service.clock import Clock
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    Refused,
    RefusedCode,
    Unavailable,
)
from service.provider.values import (
    Known,
    Required,
    Unreadable,
)
from service.vocabulary import MergeMethod, RepoRef, RequiredName

KEPT_S = 300.0
BRANCHES_MAX = 2_000
SELF_REQUIRED = "self_required"
NOT_IN_PLAN = "upgrade to github"  # a private repository of a plan without protection

# Rules that change no decision of ours but that people should know of.
NOTED = frozenset(
    {
        "workflows",
        "required_deployments",
        "code_scanning",
        "required_linear_history",
        "required_signatures",
    }
)


@dataclass(frozen=True, slots=True)
class BranchRules:
    """Everything read about one branch; `has_queue`: GitHub's own merge queue owns it."""

    known: Known
    needs_resolved_threads: bool
    has_queue: bool


class Protection:
    """Rules of branches, kept five minutes and revalidated by their ETags."""

    def __init__(self, clock: Clock, app_id: str) -> None:
        self._clock = clock
        self._app_id = app_id
        self._kept: LRUCache[tuple[str, str], tuple[float, BranchRules]] = LRUCache(BRANCHES_MAX)

    async def required(self, line: Line, branch: str) -> Required:
        """Required statuses of a branch. Raises Refused(PROVIDER_QUEUE), Gone(REPOSITORY)."""
        try:
            rules = await self.rules(line, branch)
        except (Unavailable, NotPermitted) as failure:
            return Unreadable(failure.message)
        except Gone as gone:
            if gone.kind is GoneKind.BRANCH:
                return Unreadable(gone.message)
            raise
        if rules.has_queue:
            raise Refused(f"{branch} uses GitHub's own merge queue.", RefusedCode.PROVIDER_QUEUE)
        return rules.known

    async def rules(self, line: Line, branch: str) -> BranchRules:
        """The same with what else is read there. Raises what a read raises."""
        kept = self.kept(line.repo, branch)
        if kept is None:
            kept = await self._read(line, branch)
            self._kept[_key(line.repo), branch] = (self._clock.monotonic_s(), kept)
        return kept

    def kept(self, repo: RepoRef, branch: str) -> BranchRules | None:
        """The rules as last read, None when that is too long ago."""
        read_s, rules = self._kept.get((_key(repo), branch), (0.0, None))
        return rules if self._clock.monotonic_s() - read_s <= KEPT_S else None

    def forget(self, repo: RepoRef) -> None:
        """Read a repository's rules afresh the next time."""
        for key in [key for key in self._kept if key[0] == _key(repo)]:
            del self._kept[key]

    async def _read(self, line: Line, branch: str) -> BranchRules:
        rules = await _rulesets(line, branch)
        classic = await _classic(line, branch)
        pinned = [check for rule in rules for check in rule.checks]
        required = tuple(dict.fromkeys([*pinned, *classic]))
        kept = tuple(check for check in required if not self._is_own(check, branch))
        notes = [rule.type for rule in rules if rule.type in NOTED]
        if kept != required:
            notes.append(SELF_REQUIRED)
        return BranchRules(
            known=Known(kept, _methods(rules), tuple(dict.fromkeys(notes))),
            needs_resolved_threads=any(rule.needs_resolved_threads for rule in rules),
            has_queue=any(rule.type == "merge_queue" for rule in rules),
        )

    def _is_own(self, check: RequiredName, branch: str) -> bool:
        return check.name == own_check(branch) and check.source_id in (None, self._app_id)


def own_check(branch: str) -> str:
    """The name of the check run that we publish for a queue."""
    return f"Headgate ({branch})"


async def _rulesets(line: Line, branch: str) -> tuple[Rule, ...]:
    try:
        listed, complete = await line.listed(
            f"/rules/branches/{paths.of_branch(branch)}", is_kept=True
        )
    except NotPermitted as denied:
        if NOT_IN_PLAN in denied.message.lower():
            return ()
        raise
    if not complete:
        raise Unavailable("GitHub lists more rules than we read.", line.clock.now())
    return tuple(answers.rule_of(each) for each in listed)


async def _classic(line: Line, branch: str) -> tuple[RequiredName, ...]:
    tail = f"/branches/{paths.of_branch(branch)}/protection/required_status_checks"
    answer = await line.get(tail, expects=(403, 404), is_kept=True)
    if answer.status == 404 or NOT_IN_PLAN in answer.message.lower():
        return ()
    if answer.status == 403:
        return await _classic_from_branch(line, branch, answer)
    return answers.classic_checks_of(answer.fields)


async def _classic_from_branch(line: Line, branch: str, denied: Answer) -> tuple[RequiredName, ...]:
    """The branch itself shows its required checks to some who may not read its protection."""
    answer = await line.get(f"/branches/{paths.of_branch(branch)}", expects=(404,), is_kept=True)
    if answer.status == 200:
        found = answers.branch_checks_of(answer.fields)
        if found is not None:
            return found
    raise NotPermitted(
        denied.message or "The branch protection cannot be read.", "administration: read"
    )


def _methods(rules: Iterable[Rule]) -> frozenset[MergeMethod] | None:
    """What all rules together allow, None when none speaks of it."""
    spoken = [rule.methods for rule in rules if rule.methods is not None]
    if any(rule.type == "required_linear_history" for rule in rules):
        spoken.append(frozenset(MergeMethod) - {MergeMethod.MERGE_COMMIT})
    return frozenset.intersection(*spoken) if spoken else None


def _key(repo: RepoRef) -> str:
    return repo.slug.lower()
