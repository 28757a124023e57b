"""The proof of a landing: each of its conditions fails alone."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.model import LandMode, Proof, Tip
from service.mergequeue.engine.outputs import Land, LandStep
from service.mergequeue.operations import proving
from service.mergequeue.operations.proving import Proved, Unproved
from service.provider.trees import Different, Same, TreeChange, Unproven
from service.provider.values import Commit, Merged
from service.vocabulary import MergeMethod, RepoRef, Sha
from tests.harness.values import ValuesProvider


def sha(letter: str) -> Sha:
    """A commit or tree that is known by one letter."""
    return Sha(letter * 40)


REPO = RepoRef("values.test", "octo", "widgets")
TIP = Tip(sha("0"), sha("1"))
HEADS = (sha("a"), sha("b"))
TREES = (sha("c"), sha("d"))
COMMITS = (sha("e"), sha("f"))
STEPS = tuple(
    LandStep(
        position=place,
        pr=place,
        entry=f"e{place}",
        head=HEADS[place - 1],
        parent_tree=TIP.tree,
        tree=TREES[place - 1],
        commit=COMMITS[place - 1],
        tested_tree=TREES[1],
    )
    for place in (1, 2)
)
STRANGER = Commit(sha("9"), sha("8"), (sha("7"),))


def a_land(mode: LandMode, method: MergeMethod, proof: Proof = Proof.EXACT_TREE) -> Land:
    """One call lands the first position, a move of the branch both."""
    steps = STEPS[:1] if mode is LandMode.CALL else STEPS
    return Land(1, "r1", mode, method, TIP, steps, proof)


def proved(action: Land, *oldest_first: Commit, at: Sha | None = None) -> Proved | Unproved:
    """What the proof says of these commits above the expected tip."""
    commit = oldest_first[-1].sha if at is None else at
    return proving.proof_of(action, Merged(commit, tuple(reversed(oldest_first))))


SQUASHED = Commit(sha("2"), TREES[0], (TIP.sha,))
MERGED = Commit(sha("2"), TREES[0], (TIP.sha, HEADS[0]))
REBASED = (Commit(sha("3"), sha("4"), (TIP.sha,)), Commit(sha("2"), TREES[0], (sha("3"),)))
MOVED = tuple(
    Commit(step.commit, step.tree, (parent, step.head))
    for step, parent in zip(STEPS, (TIP.sha, COMMITS[0]), strict=True)
)
SQUASH = a_land(LandMode.CALL, MergeMethod.SQUASH)
MERGE = a_land(LandMode.CALL, MergeMethod.MERGE_COMMIT)
REBASE = a_land(LandMode.CALL, MergeMethod.REBASE)
ADVANCE = a_land(LandMode.CAS, MergeMethod.MERGE_COMMIT)


@pytest.mark.parametrize(
    ("action", "commits"),
    [(SQUASH, (SQUASHED,)), (MERGE, (MERGED,)), (REBASE, REBASED)],
    ids=["squash", "merge", "rebase"],
)
def test_one_call_lands_as_the_commit_that_was_made(
    action: Land, commits: tuple[Commit, ...]
) -> None:
    last = commits[-1]
    assert proved(action, *commits) == Proved(((STEPS[0], last.sha, last.tree),), None)


def test_a_move_of_the_branch_lands_every_position_as_it_was_tested() -> None:
    assert proved(ADVANCE, *MOVED) == Proved(
        tuple((step, step.commit, step.tree) for step in STEPS), None
    )


@pytest.mark.parametrize("action", [SQUASH, MERGE, REBASE], ids=["squash", "merge", "rebase"])
def test_what_others_pushed_on_top_is_named_and_no_part_of_the_landing(action: Land) -> None:
    commits = {SQUASH: (SQUASHED,), MERGE: (MERGED,), REBASE: REBASED}[action]
    above = Commit(sha("6"), sha("5"), (commits[-1].sha,))
    found = proved(action, *commits, above, at=commits[-1].sha)
    assert found == Proved(((STEPS[0], commits[-1].sha, TREES[0]),), above)


FOREIGN, TREE = "foreign_push", "other_tree"
UNPROVED: dict[str, tuple[Land, tuple[Commit, ...], str, str]] = {
    "the commit of a call is not on the branch": (
        SQUASH,
        (STRANGER,),
        FOREIGN,
        f"{SQUASHED.sha} is not on the first-parent walk of the target.",
    ),
    "a commit of others stands below the squash": (
        SQUASH,
        (Commit(sha("9"), sha("8"), (TIP.sha,)), replace(SQUASHED, parents=(sha("9"),))),
        FOREIGN,
        f"commits of others stand below {SQUASHED.sha}: {sha('9')}",
    ),
    "a commit of others stands below the merge": (
        MERGE,
        (Commit(sha("9"), sha("8"), (TIP.sha,)), replace(MERGED, parents=(sha("9"), HEADS[0]))),
        FOREIGN,
        f"commits of others stand below {MERGED.sha}: {sha('9')}",
    ),
    "the squash stands on another commit": (
        SQUASH,
        (replace(SQUASHED, parents=(sha("9"),)),),
        FOREIGN,
        f"{SQUASHED.sha} does not stand on {TIP.sha}",
    ),
    "the first commit of the rebase stands on another commit": (
        REBASE,
        (replace(REBASED[0], parents=(sha("9"),)), REBASED[1]),
        FOREIGN,
        f"{REBASED[0].sha} does not stand on {TIP.sha}",
    ),
    "the merge is of another head": (
        MERGE,
        (replace(MERGED, parents=(TIP.sha, sha("9"))),),
        FOREIGN,
        f"{MERGED.sha} does not merge {HEADS[0]}",
    ),
    "the merge has no second parent": (
        MERGE,
        (SQUASHED,),
        FOREIGN,
        f"{SQUASHED.sha} does not merge {HEADS[0]}",
    ),
    "the squash has a second parent": (
        SQUASH,
        (MERGED,),
        FOREIGN,
        f"{MERGED.sha} has 2 parents, not one",
    ),
    "the squash has another tree": (
        SQUASH,
        (replace(SQUASHED, tree=sha("8")),),
        TREE,
        f"{SQUASHED.sha} has tree {sha('8')}, tested was {TREES[0]}",
    ),
    "the last commit of the rebase has another tree": (
        REBASE,
        (REBASED[0], replace(REBASED[1], tree=sha("8"))),
        TREE,
        f"{REBASED[1].sha} has tree {sha('8')}, tested was {TREES[0]}",
    ),
    "the branch moved to another commit than the last": (
        ADVANCE,
        (MOVED[0], replace(MOVED[1], sha=SQUASHED.sha)),
        FOREIGN,
        f"the target is at {SQUASHED.sha}, not at {COMMITS[1]}",
    ),
    "a commit that the branch moved through has another tree": (
        ADVANCE,
        (replace(MOVED[0], tree=sha("8")), MOVED[1]),
        TREE,
        f"{COMMITS[0]} has tree {sha('8')}, tested was {TREES[0]}",
    ),
    "the last commit that the branch moved to has another tree": (
        ADVANCE,
        (MOVED[0], replace(MOVED[1], tree=sha("8"))),
        TREE,
        f"{COMMITS[1]} has tree {sha('8')}, tested was {TREES[1]}",
    ),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_a_landing_is_not_proved_if(name: str) -> None:
    action, commits, cause, text = UNPROVED[name]
    at = SQUASHED.sha if commits == (STRANGER,) else None
    assert proved(action, *commits, at=at) == Unproved(cause, text)


def test_members_that_land_by_one_rebase_end_where_their_trees_are() -> None:
    both = replace(REBASE, steps=STEPS)
    first = Commit(sha("5"), TREES[0], (TIP.sha,))
    between = Commit(sha("4"), sha("6"), (first.sha,))
    last = Commit(sha("2"), TREES[1], (between.sha,))
    expected = ((STEPS[0], first.sha, first.tree), (STEPS[1], last.sha, last.tree))
    assert proved(both, first, between, last) == Proved(expected, None)
    other = replace(first, tree=sha("7"))
    words = f"no commit has the tree {TREES[0]}, with which it was tested"
    assert proved(both, other, between, last) == Unproved("other_tree", words)


@pytest.mark.parametrize(
    ("chain", "words"), [(None, "within 250 commits"), ((), f"the target is at {TIP.sha} again")]
)
def test_a_landing_that_does_not_lead_back_to_the_expected_tip_is_not_proved(
    chain: tuple[Commit, ...] | None, words: str
) -> None:
    found = proving.proof_of(SQUASH, Merged(SQUASHED.sha, chain))
    assert isinstance(found, Unproved)
    assert (found.cause, words in found.text) == (FOREIGN, True)


def test_beside_another_lane_the_tree_is_compared_elsewhere() -> None:
    action = a_land(LandMode.CALL, MergeMethod.SQUASH, Proof.SAME_CHANGE)
    other = replace(SQUASHED, tree=sha("8"))
    assert proved(action, other) == Proved(((STEPS[0], other.sha, other.tree),), None)


def test_commits_inside_a_pull_request_may_stand_between_the_tested_ones() -> None:
    inner = Commit(sha("6"), sha("5"), (TIP.sha,))
    assert isinstance(proved(ADVANCE, inner, *MOVED), Proved)


class Differing(ValuesProvider):
    """A provider that finds many paths in which two changes differ."""

    def __init__(self, paths: int) -> None:
        super().__init__()
        self.paths = tuple(f"{number}.py" for number in range(paths))

    async def same_change(
        self, repo: RepoRef, tested: TreeChange, landed: TreeChange
    ) -> Same | Different | Unproven:
        return Different(self.paths)


@pytest.mark.parametrize(
    ("paths", "named"), [(20, "18.py, 19.py"), (21, "18.py, 19.py and 1 more")]
)
async def test_another_change_than_the_tested_one_proves_nothing(paths: int, named: str) -> None:
    action = a_land(LandMode.CALL, MergeMethod.SQUASH, Proof.SAME_CHANGE)
    outcome = proved(action, SQUASHED)
    assert isinstance(outcome, Proved)
    found = await proving.proved_of(Differing(paths), REPO, action, outcome)
    assert isinstance(found, Unproved)
    assert found.cause == "other_change"
    assert found.text.endswith(named)


async def test_an_equal_tree_needs_no_comparison_of_changes() -> None:
    outcome = proved(SQUASH, SQUASHED)
    assert isinstance(outcome, Proved)
    assert await proving.proved_of(Differing(1), REPO, SQUASH, outcome) == outcome
