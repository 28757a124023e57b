"""docs/design/provenance.md has the table of facts as the code has it."""

from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from bot import settings as deployment
from service.mergequeue.engine.config import QueueConfig
from service.provenance import FactKind, Proof
from service.settings import definitions
from service.testhealth.settings import TestSettings
from tests.docs import fact_rules
from tests.docs.fact_rules import RULES, FactRule

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/provenance.md"
HEAD = """\
| Fact | Who can make one | What proves it | What it may move | Without proof | Where |
|---|---|---|---|---|---|
"""
SETTINGS = {
    "",
    *map(to_camel, definitions(QueueConfig)),
    *definitions(TestSettings),
    *(deployment.PREFIX + name.upper() for name in deployment.Settings.model_fields),
}
"""As people write them: of queues in camelCase, of tests in snake_case, of a deployment as there.

Empty: no setting does.
"""

ANYBODYS = {Proof.NAME, Proof.NONE}
EACH = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind.name)


def row(rule: FactRule) -> str:
    """One line of the table."""
    best, *weaker = (f"`{proof.name}`" for proof in rule.proofs)
    proofs = ", ".join((best, *weaker))
    if rule.lowered_by:
        proofs = f"{best}; {', '.join(weaker)} by `{rule.lowered_by}`" if weaker else proofs
    where = ", ".join(f"`{path}`" for path in rule.checked_in)
    cells = (rule.kind.value, rule.makers, proofs, rule.moves, rule.otherwise, where)
    return "| " + " | ".join(cells) + " |\n"


def test_the_table_is_current(pytestconfig: pytest.Config):
    old = PAGE.read_text("utf-8")
    before, head, after = old.partition(HEAD)
    assert head, f"{PAGE.name} has no table with this head:\n{HEAD}"
    rest = after[after.index("\n## ") :]
    fresh = before + HEAD + "".join(row(rule) for rule in RULES) + rest
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


def test_every_kind_has_one_rule():
    assert [rule.kind for rule in RULES] == list(FactKind)
    assert fact_rules.BY_KIND.keys() == set(FactKind)


@EACH
def test_a_rule_says_who_what_and_what_otherwise(rule: FactRule):
    assert all((rule.makers, rule.moves, rule.otherwise, rule.checked_in))
    assert "|" not in row(rule).replace(" | ", "").strip("| \n")


@EACH
def test_what_everybody_can_say_proves_nothing(rule: FactRule):
    assert rule.proofs
    assert not ANYBODYS.intersection(rule.proofs)


def test_a_delivery_is_a_reason_to_read_and_nothing_more():
    assert [rule.kind for rule in RULES if Proof.SIGNED in rule.proofs] == [FactKind.WEBHOOK]


@EACH
def test_the_modules_that_check_a_proof_exist(rule: FactRule):
    assert not [path for path in rule.checked_in if not (ROOT / path).is_file()]


@EACH
def test_a_setting_that_accepts_weaker_proofs_exists(rule: FactRule):
    assert rule.lowered_by in SETTINGS


@EACH
def test_proofs_are_named_once_and_the_strongest_first(rule: FactRule):
    order = list(Proof)
    places = [order.index(proof) for proof in rule.proofs]
    assert places == sorted(set(places))
