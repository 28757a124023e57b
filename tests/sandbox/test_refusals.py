"""The sandbox refuses in GitHub's words, as collected in tests/github/refusals.toml."""

import ast
import tomllib
from pathlib import Path

import pytest

from bot import sandbox as package
from bot.sandbox import refusal
from bot.sandbox.refusal import FORMS, SENTENCES, STATUS_KNOWN

CORPUS = Path(__file__).parents[1] / "github" / "refusals.toml"
WRITTEN = Path(package.__file__).parent
# The collected status is that of a git push; by REST the same sentence comes with this one.
BY_REST = {"push.queued": 422}


@pytest.fixture(scope="module")
def corpus():
    return tomllib.loads(CORPUS.read_text())


def calls_of(*names):
    """Every call of these functions in the sandbox: (file, call)."""
    for path in sorted(WRITTEN.rglob("*.py")):
        if path.name == "refusal.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in names:
                yield f"{path.name}:{node.lineno}", node


def test_every_sentence_is_a_collected_one(corpus):
    collected = {
        one["id"]: (BY_REST.get(one["id"], one["status"]), one["text"]) for one in corpus["refusal"]
    }
    own = {name: (one.status, one.text) for name, one in SENTENCES.items()}
    assert own == {name: collected.get(name) for name in own}


def test_every_further_form_belongs_to_a_collected_sentence(corpus):
    collected = {one["id"] for one in corpus["refusal"]}
    assert {name.partition("/")[0] for name in FORMS} <= collected


def test_no_sentence_without_a_source_is_spoken(corpus):
    unsourced = {one["text"] for one in corpus["unsourced"]} - {"Cannot delete the default branch"}
    spoken = {one.text for table in (SENTENCES, FORMS, STATUS_KNOWN) for one in table.values()}
    assert not unsourced & spoken


def test_sentences_of_known_status_alone_are_no_collected_ones(corpus):
    collected = {one["text"] for one in corpus["refusal"]}
    mine = {one.text for one in STATUS_KNOWN.values()} - {"Not Found"}
    assert not collected & mine


def test_refusals_of_the_imitated_api_come_from_the_tables():
    free = [
        place
        for place, call in calls_of("Refusal")
        if not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 400)
        and not _says_validation_failed(call)
        and not any(
            isinstance(one, ast.Call) and getattr(one.func, "id", None) == "say"
            for one in ast.walk(call)
        )
    ]
    # rules.py joins sentences of the tables, door.py answers what a test planted, and
    # actions_by_people.py is the control plane.
    allowed = {"rules.py", "door.py", "actions_by_people.py"}
    assert {place.partition(":")[0] for place in free} <= allowed, free


def _says_validation_failed(call):
    message = call.args[1]
    words = ("Validation Failed", "Unprocessable Entity")
    return isinstance(message, ast.Constant) and message.value in words


def test_every_id_that_is_named_exists_and_every_id_is_named():
    known = {**SENTENCES, **FORMS, **STATUS_KNOWN}
    written = "".join(path.read_text() for path in WRITTEN.rglob("*.py"))
    named = {
        call.args[0].value
        for _, call in calls_of("refused", "say", "custom")
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert {one for one in named if isinstance(one, str)} <= set(known)
    composed = {"checks.expected", "checks.failing", "checks.in_progress", "checks.pending"}
    composed |= {"checks.wrong_source", "checks.all_expected", "checks.all_pending"}
    assert not {one for one in set(known) - composed if f'"{one}"' not in written}


@pytest.mark.parametrize("values", [(), (1, 2)])
def test_a_sentence_wants_a_value_for_each_placeholder(values):
    with pytest.raises(ValueError, match=r"review\.approvals"):
        refusal.say("review.approvals", *values)


def test_placeholders_are_filled_in_order():
    said = refusal.say("checks.mixed", 2, 3, 1, "expected", 1, "failing")
    assert said == ("2 of 3 required status checks have not succeeded: 1 expected and 1 failing.")
