"""Walk every landing through the first-parent history of the target."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from service.mergequeue.auditing.findings import Finding, Rule
from service.mergequeue.auditing.records import (
    BranchCommit,
    EntryRecord,
    History,
    QueueRows,
    RunRecord,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.vocabulary import MergeMethod, Sha


@dataclass(frozen=True, slots=True)
class LaneQuestion:
    """Two changes, each from a tree to a tree, that have to be the same one."""

    landing: int
    tested: tuple[Sha, Sha]
    landed: tuple[Sha, Sha]


@dataclass(slots=True)
class Walk:
    """The place of each commit in the history, and whether a landing explains it.

    `bases` has the commit on which the target was before each landing that was found, by its id;
    the first of them is at `first`.
    """

    commits: Sequence[BranchCommit]
    places: dict[str, int]
    first: int
    explained: set[str] = field(default_factory=set)
    bases: dict[int, Sha] = field(default_factory=dict)

    def commit(self, sha: str | None) -> BranchCommit | None:
        """Return a commit of the history."""
        place = self.places.get(sha or "")
        return None if place is None else self.commits[place]


def landed(rows: QueueRows) -> list[LandingRecord]:
    """Return the landings that are recorded as landed, in the order of their rows."""
    return [row for row in rows.landings if row.state is LandingState.LANDED]


def lane_questions(rows: QueueRows, history: History) -> list[LaneQuestion]:
    """Return what git has to compare of landings beside other lanes, whose trees differ."""
    walk = walk_of(history)
    asked = []
    for row in landed(rows):
        commit, run = walk.commit(row.landed_sha), rows.runs.get(row.run)
        before = None if commit is None else walk.commit(commit.parents[0])
        if run is None or commit is None or before is None or not _is_beside(row, run):
            continue
        tested = (run.tree_before(row.position), row.expected_tree)
        asked.append(LaneQuestion(row.id, tested, (before.tree, commit.tree)))
    return asked


def findings(rows: QueueRows, history: History, walk: Walk) -> Iterator[Finding]:
    """Recompute every landing into `walk`, and name each commit that none explains."""
    yield from _repeated(rows)
    yield from _placed(rows, history, walk)
    yield from _in_order(rows, walk)
    for _, group in groupby(landed(rows), key=lambda row: (row.run, row.number)):
        yield from _one_landing(rows, history, walk, sorted(group, key=lambda row: row.position))
    apps = _apps(rows, walk)
    known = [*rows.returned, *(row.landed_sha for row in rows.entries)]
    walk.first = min([walk.first, *(walk.places[one] for one in known if one in walk.places)])
    for commit in history.commits[walk.first :]:
        if commit.sha not in walk.explained and commit.sha not in rows.others:
            yield _unexplained(rows, commit, apps)


def walk_of(history: History) -> Walk:
    """Return the history as a walk finds its commits."""
    places = {str(one.sha): place for place, one in enumerate(history.commits)}
    return Walk(history.commits, places, first=len(history.commits))


def _repeated(rows: QueueRows) -> Iterator[Finding]:
    """A head, and a commit, that landed more than once; a head that adds nothing has no commit."""
    heads: dict[tuple[int, Sha], LandingRecord] = {}
    commits: dict[Sha, LandingRecord] = {}
    for row in landed(rows):
        first = heads.setdefault((row.pr, row.head), row)
        if first is not row:
            text = f"#{row.pr} landed with head {row.head} as {first.landed_sha} and again as"
            yield Finding(Rule.LANDED_TWICE, f"{text} {row.landed_sha}", row.pr, row.landed_sha)
        if row.landed_sha is None or _adds_nothing(rows, row):
            continue
        other = commits.setdefault(row.landed_sha, row)
        if other is not row and other.pr != row.pr:
            text = f"{row.landed_sha} landed #{other.pr} and #{row.pr}"
            yield Finding(Rule.COMMIT_LANDED_TWICE, text, row.pr, row.landed_sha)


def _adds_nothing(rows: QueueRows, row: LandingRecord) -> bool:
    """Return whether the head was in what is below it, so that the branch stayed as it was."""
    run = rows.runs.get(row.run)
    if run is None or not len(run.steps) >= row.position > 0:
        return row.landed_sha == row.expected_parent
    return run.steps[row.position - 1].contained


def _placed(rows: QueueRows, history: History, walk: Walk) -> Iterator[Finding]:
    """Landings whose commit is not where it was found when they were recorded.

    A history that has the newest tip, or a newer landing, lacks none because it is old.
    """
    found = landed(rows)
    known = {*walk.places, history.start}
    newest = max((row.id for row in found if row.landed_sha in walk.places), default=0)
    newer: list[LandingRecord] = []
    for row in found:
        if row.landed_sha is None:
            text = f"#{row.pr} is recorded as landed, and no commit is"
            yield Finding(Rule.LANDING_WITHOUT_COMMIT, text, row.pr)
        elif row.landed_sha in known or _adds_nothing(rows, row):
            continue
        elif row.landed_sha in history.elsewhere or row.id < newest or rows.tip in known:
            text = f"#{row.pr} landed as {row.landed_sha}, which is not on {rows.queue.branch}"
            yield Finding(Rule.LANDING_NOT_ON_BRANCH, text, row.pr, row.landed_sha)
        else:
            newer.append(row)
    for last in newer[-1:]:
        text = f"{history.place} does not have the newest {len(newer)} landings yet, the last is"
        said = f"{text} #{last.pr} as {last.landed_sha}"
        yield Finding(Rule.CLONE_IS_BEHIND, said, last.pr, last.landed_sha)


def _in_order(rows: QueueRows, walk: Walk) -> Iterator[Finding]:
    """Landings that are below one that was recorded before them."""
    above: LandingRecord | None = None
    highest = -1
    for row in landed(rows):
        place = walk.places.get(row.landed_sha or "")
        if place is None:
            continue
        if place < highest and above is not None and not _adds_nothing(rows, row):
            text = f"#{row.pr} was recorded after #{above.pr}, and is below it"
            yield Finding(Rule.ORDER_DIFFERS, text, row.pr, row.landed_sha)
        if place > highest:
            highest, above = place, row


def _one_landing(
    rows: QueueRows, history: History, walk: Walk, group: Sequence[LandingRecord]
) -> Iterator[Finding]:
    """All positions that one call or update brought, each on the one before it."""
    base = group[0].expected_parent
    for row in group:
        commit = walk.commit(row.landed_sha)
        if commit is None or _adds_nothing(rows, row):
            continue
        run = rows.runs.get(row.run)
        walk.bases[row.id] = base
        yield from _tree(row, run, commit, history)
        yield from _own_commits(row, run, commit, base, walk)
        base = commit.sha


def _tree(
    row: LandingRecord, run: RunRecord | None, commit: BranchCommit, history: History
) -> Iterator[Finding]:
    if row.landed_tree != commit.tree:
        text = f"{commit.sha} has tree {commit.tree}, and {row.landed_tree} is recorded"
        yield Finding(Rule.TREE_DIFFERS, text, row.pr, commit.sha)
    elif commit.tree == row.expected_tree:
        return
    elif run is not None and not run.is_parallel:
        text = f"{commit.sha} has tree {commit.tree}, and {row.expected_tree} was tested"
        yield Finding(Rule.TREE_DIFFERS, text, row.pr, commit.sha)
    elif row.id not in history.same_changes:
        text = f"whether {commit.sha} is the change that was tested cannot be told there"
        yield Finding(Rule.CHANGE_UNKNOWN, text, row.pr, commit.sha)
    elif not history.same_changes[row.id]:
        text = f"{commit.sha} is another change than the one that was tested"
        yield Finding(Rule.CHANGE_DIFFERS, text, row.pr, commit.sha)


def _is_beside(row: LandingRecord, run: RunRecord) -> bool:
    is_known = len(run.steps) >= row.position > 0
    return run.is_parallel and is_known and row.landed_tree != row.expected_tree


def _own_commits(
    row: LandingRecord, run: RunRecord | None, commit: BranchCommit, base: Sha, walk: Walk
) -> Iterator[Finding]:
    """The commits between what was there and the landed one: its own, and no other's."""
    is_rebase = run is None or run.method is MergeMethod.REBASE
    own = [commit]
    while is_rebase and own[-1].parents[:1] not in ((), (base,)):
        below = walk.commit(own[-1].parents[0])
        if below is None or below.sha in walk.explained:
            break
        own.append(below)
    walk.explained |= {str(one.sha) for one in own}
    walk.first = min(walk.first, walk.places[own[-1].sha])
    if own[-1].parents[:1] != (base,):
        stands = own[-1].parents[0] if own[-1].parents else "nothing"
        text = f"{own[-1].sha} of #{row.pr} stands on {stands}, and {base} was expected"
        yield Finding(Rule.PARENT_DIFFERS, text, row.pr, commit.sha)
    if len(commit.parents) > 1 and commit.parents[1:] != (row.head,):
        text = f"{commit.sha} merges {', '.join(commit.parents[1:])}, and not {row.head}"
        yield Finding(Rule.HEAD_DIFFERS, text, row.pr, commit.sha)


def _unexplained(rows: QueueRows, commit: BranchCommit, apps: frozenset[str]) -> Finding:
    """Say how a commit that no landing explains came onto the target, as far as rows tell."""
    text = f"{commit.sha} by {commit.author}: {commit.subject}"
    entry = _merged_as(rows, commit)
    number = rows.returned.get(commit.sha) if entry is None else entry.pr
    if commit.sha in rows.returned or (
        entry is not None and entry.reason == Reason.LANDED_UNRECORDED
    ):
        rule = Rule.LANDED_UNRECORDED
    elif _is_unproved(rows, commit, entry):
        rule = Rule.LANDED_UNPROVED
    elif entry is not None and entry.reason == Reason.MERGED_BY_HAND:
        rule = Rule.MERGED_BY_HAND
    elif commit.claims or commit.email in apps or entry is not None:
        rule = Rule.COMMIT_WITHOUT_LANDING
    else:
        rule = Rule.PUSHED_PAST_THE_QUEUE
    return Finding(rule, text, number, commit.sha)


def _merged_as(rows: QueueRows, commit: BranchCommit) -> EntryRecord | None:
    """Return the submission that ended with this commit, if any did."""
    found = (row for row in rows.entries if row.landed_sha == commit.sha)
    return next((row for row in found if row.state is EntryState.MERGED), None)


def _is_unproved(rows: QueueRows, commit: BranchCommit, entry: EntryRecord | None) -> bool:
    """Return whether a landing without a proof brought the commit: a person has been asked."""
    mismatches = [row for row in rows.landings if row.state is LandingState.MISMATCH]
    return any(
        row.head in commit.parents[1:]
        or (entry is not None and row.entry == entry.id)
        or (commit.claims and row.expected_parent in commit.parents)
        for row in mismatches
    )


def _apps(rows: QueueRows, walk: Walk) -> frozenset[str]:
    """Return the addresses under which the App is the author of merge commits that landed."""
    found = (walk.commit(row.landed_sha) for row in landed(rows))
    merges = (one for one in found if one is not None and len(one.parents) > 1)
    return frozenset(one.email for one in merges if "[bot]@" in one.email)
