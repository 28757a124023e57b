"""Judging what the heads of a build take back, or have in common with what landed.

See docs/design/undone-work.md 6. The mirror is held, and has what the build made.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.github.gitbuild.mirror import Mirror
from bot.github.gitbuild.undoing import Landings, Question
from bot.github.own_branches import Prefixes
from service.landed_work import Declaration, LandedWork, WorkJudged
from service.provider.undoing.changes import Landing
from service.provider.undoing.ledger import Undone
from service.provider.values import BuildRequest, BuildStep, GuardedWork
from service.vocabulary import MergeMethod, Sha

COMMITS_NAMED_MAX = 20
LANDINGS_NAMED_MAX = 50
TITLE_CHARS_MAX = 200
LINES_SHOWN_MAX = 5
LINE_CHARS_MAX = 160
_OF_MERGE = re.compile(r"Merge pull request #(\d{1,9}) from ")
_OF_TEST = re.compile(r"Headgate test: merge pr-(\d{1,9}) ")
_OF_SQUASH = re.compile(r" \(#(\d{1,9})\)$")


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the tested heads of one request in a mirror."""

    mirror: Mirror
    request: BuildRequest
    guard: GuardedWork

    async def of(self, made: Prefixes) -> dict[int, WorkJudged]:
        """Return how they stand to landed work, by number. Raises GitFailed."""
        found = {}
        tip = self.request.base_sha
        for place, (step, prefix) in enumerate(zip(self.request.steps, made, strict=True)):
            if step.tested and not prefix.contained:
                question = Question(
                    tip, prefix.tree, step.head_sha, self.guard.after, self.guard.generated
                )
                found[step.number] = await self._judged(question, made[:place])
            tip = prefix.commit
        return found

    async def _judged(self, question: Question, ahead: Prefixes) -> WorkJudged:
        landings = Landings(self.mirror)
        plain = WorkJudged(question.head, question.tip)
        undone = await landings.undone_by(question)
        if undone:
            numbers = await self._numbers_of(ahead)
            texts = await landings.messages_of(question)
            says = Declaration.of(texts, self.request.repo)
            left: list[LandedWork] = []
            for each in undone:
                one = await self._named(each, numbers)
                if not says.names(one.commits, one.number, one.title):
                    left.append(one)
                if len(left) == LANDINGS_NAMED_MAX:
                    break
            return WorkJudged(question.head, question.tip, tuple(left))
        landed = await landings.landed_already(question)
        if landed is None or landed.stands_twice:
            return plain
        by = landed.landing
        numbers = await self._numbers_of(ahead)
        work = None if by is None else _work(by, numbers.get(by.commit))
        return WorkJudged(question.head, question.tip, has_landed=True, landed_by=work)

    async def _named(self, undone: Undone, numbers: Mapping[Sha, int]) -> LandedWork:
        landing = undone.landing
        commits = await Landings(self.mirror).commits_of(landing.commit)
        plain = _work(landing, numbers.get(landing.commit))
        is_ahead = landing.commit in numbers
        return LandedWork(
            plain.commit,
            plain.number,
            plain.title,
            plain.author,
            commits[:COMMITS_NAMED_MAX] or (landing.commit,),
            undone.lines,
            tuple(_shown(line) for line in undone.shown[:LINES_SHOWN_MAX]),
            tuple(path.decode("utf-8", "backslashreplace") for path in undone.paths),
            is_ahead,
        )

    async def _numbers_of(self, ahead: Prefixes) -> dict[Sha, int]:
        """Return the pull requests of the commits that the build made for those ahead."""
        found: dict[Sha, int] = {}
        before = self.request.base_sha
        for prefix in ahead:
            if prefix.contained:
                # It has no commit of its own here.
                continue
            line: Sequence[Sha] = (prefix.commit,)
            if self.request.method is MergeMethod.REBASE:
                line = await Landings(self.mirror).line_of(prefix.commit, before)
            found |= dict.fromkeys(line, prefix.number)
            before = prefix.commit
        return found


def not_judged(
    request: BuildRequest, trouble: str, *, later: bool = False
) -> dict[int, WorkJudged]:
    """Return that none of the tested heads could be judged, and why; see `WorkJudged.later`."""
    tested: Iterator[BuildStep] = (step for step in request.steps if step.tested)
    return {
        step.number: WorkJudged(step.head_sha, request.base_sha, trouble=trouble, later=later)
        for step in tested
    }


def _work(landing: Landing, number: int | None) -> LandedWork:
    title, named = _title_of(landing.message)
    return LandedWork(
        landing.commit,
        named if number is None else number,
        title[:TITLE_CHARS_MAX],
        landing.author,
        (landing.commit,),
    )


def _title_of(message: str) -> tuple[str, int | None]:
    """Return the title of what a commit message landed, and the number that it names."""
    first, _, rest = message.strip().partition("\n")
    merged = _OF_MERGE.match(first) or _OF_TEST.match(first)
    if merged is not None:
        return rest.strip().partition("\n")[0] or first, int(merged[1])
    squashed = _OF_SQUASH.search(first)
    if squashed is not None:
        return first[: squashed.start()], int(squashed[1])
    return first, None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").strip()
    return "".join(each for each in text if each.isprintable())[:LINE_CHARS_MAX]
