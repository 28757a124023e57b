"""FIXED and ADAPTIVE answer the questions of the core; the fitted numbers stand in one table."""

import ast
import re
from pathlib import Path

import pytest

from service.mergequeue import engine
from service.mergequeue.engine.config import BatchSizing, QueueConfig
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.policy import constants, policies
from service.mergequeue.engine.policy.questions import Policy
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import SYSTEM
from tests.simulation import settings
from tests.simulation.world import World

ROOT = Path(engine.__file__).parent
TABLE = Path(constants.__file__)
BOTH = (policies.FIXED, policies.ADAPTIVE)


class Watched(World):
    """A history that keeps each value of its queue."""

    def __init__(self, seed: int, weights: settings.Weights) -> None:
        self.seen: list[MergeQueue] = []
        super().__init__(seed, weights)

    def tell(self, one: Input) -> None:
        super().tell(one)
        self.seen.append(self.queue)


def test_the_setting_chooses_the_policy() -> None:
    for sizing, policy in zip((BatchSizing.FIXED, BatchSizing.ADAPTIVE), BOTH, strict=True):
        assert policies.policy_of(QueueConfig(batch_sizing=sizing)) is policy


@pytest.mark.parametrize("folder", ["applying", "culprits", "explaining", "planning", "state"])
def test_the_core_does_not_look_at_the_setting(folder: str) -> None:
    texts = {file.name: file.read_text("utf-8") for file in (ROOT / folder).glob("*.py")}
    found = [name for name, text in texts.items() if re.search("batch_sizing|BatchSizing", text)]
    assert texts
    assert found == []


@pytest.mark.parametrize("seed", range(8))
def test_no_answer_changes_the_queue(seed: int) -> None:
    world = Watched(seed, settings.EVERYTHING)
    world.play()
    assert world.seen
    for queue in world.seen[::10]:
        for policy in BOTH:
            draft = Draft(queue, world.now, SYSTEM)
            _ask_everything(policy, draft)
            assert draft.revision == 0
            assert draft.value() is queue


def _ask_everything(policy: Policy, draft: Draft) -> None:
    starts, suspects, confirms = (
        policy.starts(draft),
        policy.suspects(draft),
        policy.confirms(draft),
    )
    policy.retests(draft, 1.0)
    starts.in_order()
    starts.size(len(draft.places.waiting), 1)
    for entry in draft.entries.values():
        _ask_of_entry(policy, draft, entry)
    for run in draft.runs.values():
        suspects.chance_of_failure(run)
        if draft.own(run):
            suspects.leaves(run)
            suspects.is_to_blame(run)
    confirms.hedges(3)
    confirms.second_looks()
    list(confirms.witnesses(draft.runs.values()))


def _ask_of_entry(policy: Policy, draft: Draft, entry: Entry) -> None:
    starts, suspects, confirms = (
        policy.starts(draft),
        policy.suspects(draft),
        policy.confirms(draft),
    )
    policy.is_isolated(draft.queue.config, entry)
    policy.waits_until(draft.queue.config, [entry])
    for ask in (starts.is_apart, starts.is_suspect, starts.waits, starts.holds_back):
        ask(entry)
    starts.joins(entry).admits(entry)
    for ask in (suspects.is_suspect, suspects.has_failed_alone, suspects.is_rejected):
        ask(entry)
    assert 0.0 < suspects.failing(entry) < 1.0
    suspects.suspicion(entry)
    confirms.is_look_wanted(entry)


def numbers_of(text: str) -> dict[str, tuple[str, str]]:
    """The unit and the docstring of each constant in a module."""
    lines, body = text.splitlines(), ast.parse(text).body
    found = {}
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            unit = lines[node.lineno - 1].partition("  # ")[2]
            told = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                told = str(after.value.value)
            found[node.targets[0].id] = (unit, told)
    return found


def lacking(text: str) -> list[str]:
    """The constants without a unit, a meaning or an origin."""
    return [
        name
        for name, (unit, told) in numbers_of(text).items()
        if not unit or not re.fullmatch(r"\S.+\.\nFrom: \S.+\.", told, re.DOTALL)
    ]


def test_every_fitted_number_has_its_unit_its_meaning_and_its_origin() -> None:
    text = TABLE.read_text("utf-8")
    assert len(numbers_of(text)) > 30
    assert lacking(text) == []


@pytest.mark.parametrize(
    "text",
    [
        'A = 1\n"""A number.\nFrom: F 30 x 24."""',
        "A = 1  # runs\n",
        'A = 1  # runs\n"""A number."""',
        'A = 1  # runs\n"""A number.\nFrom: """',
    ],
)
def test_a_number_without_them_is_found(text: str) -> None:
    assert lacking(text) == ["A"]


def test_every_fitted_number_is_used() -> None:
    parts = [file.read_text("utf-8") for file in ROOT.rglob("*.py") if file != TABLE]
    used = set(re.findall(r"constants\.([A-Z_]+)", "\n".join(parts)))
    assert used == numbers_of(TABLE.read_text("utf-8")).keys()


def test_no_part_of_a_policy_has_a_fitted_number_of_its_own() -> None:
    own = [
        f"{file.name}: {ast.unparse(node)}"
        for file in TABLE.parent.glob("*.py")
        if file != TABLE
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, float)
    ]
    assert own == []
