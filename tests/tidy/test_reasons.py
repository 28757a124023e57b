"""A reason is described in its record and given by a rule, and nowhere else.

To add one: write its record in a file of `service/mergequeue/reasons`, run `make docs`, and give it
where its rule is.
"""

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields

import pytest

from service.mergequeue.engine.reasons import NEEDS, Cause, HoldReason, Reason
from service.mergequeue.reasons import records
from service.mergequeue.reasons.record import (
    Blame,
    CauseRecord,
    HoldRecord,
    Record,
    StepKind,
    WhoMustAct,
)
from tests.tidy.tree import PRODUCT, Source, is_in, sources

RECORDS = "service/mergequeue/reasons"
ENGINE = "service/mergequeue/engine"
RULES = (
    ENGINE,
    "service/mergequeue/operations",
    "service/mergequeue/store",
    "service/mergequeue/simulation",
    "service/mergequeue/auditing",
)
"""Where rules may ask for several reasons at once. Texts, pages and answers read the record."""

NAMING_MEDIAN_MAX = 3
CODE = re.compile(r"[a-z]+(_[a-z]+)*")
ENUMS = ("Reason", "HoldReason", "Cause")

# What the engine reads of a record: codes, parties and flags, and its own note as evidence.
READ_BY_ENGINE = {"who", "retryable", "blame", "submitted", "need", "aside", "cancelled"}
READ_BY_ENGINE |= {
    "next",
    "pause_min",
    "evidence",
    "scope",
    "is_breaker",
    "is_lifted_by_person",
    "is_outside",
}
SENTENCES = {"goal", "brief", "clause", "label"}
FIELDS = {field.name for kind in (Record, HoldRecord, CauseRecord) for field in fields(kind)}

# The adapter never imports these codes; it has enums of the same names.
PRODUCT_SOURCES = tuple(each for each in sources(*PRODUCT) if not is_in(each.path, "bot/github"))


def clauses_of(record: Record) -> list[str]:
    """All texts that say why something is so."""
    endings = [each for each in (record.failed, record.cancelled, record.merged) if each]
    waits = [record.submitted, record.pending, record.testing, record.passed, record.undecided]
    found = [*waits, *(each.clause for each in endings)]
    found += [record.need.goal] if record.need else []
    found += [record.refused.text] if record.refused else []
    return [each for each in found if each]


@pytest.mark.parametrize("reason", Reason)
def test_each_record_is_complete(reason: Reason):
    record = reason.record
    assert CODE.fullmatch(record.code)
    assert clauses_of(record)
    if record.need is not None:
        assert record.need.goal
        assert record.need.brief
    for ending in filter(None, (record.failed, record.cancelled)):
        assert ending.label
        assert ending.next or (not ending.may_return and record.who is WhoMustAct.NOBODY)
    if record.failed is not None:
        assert record.who is not WhoMustAct.NOBODY, "somebody must act after a failure"
    if record.blame is not Blame.NOTHING:
        assert record.who is WhoMustAct.AUTHOR
        assert record.failed is not None


def test_no_two_records_have_the_same_code_word_of_the_provider_or_file():
    listed = [one.code for family in records.FAMILIES for one in family.RECORDS]
    assert len(listed) == len(set(listed))
    blockers = [need.blocker for need in NEEDS.values() if need.blocker is not None]
    assert len(blockers) == len(set(blockers))


@pytest.mark.parametrize("code", [*Reason, *HoldReason])
def test_each_reason_and_each_hold_says_what_a_program_does_next(code: Reason | HoldReason):
    record = code.record
    assert isinstance(record.next, StepKind)
    assert record.next is not StepKind.SUBMIT, "only what was never submitted is"
    if isinstance(record, HoldRecord):
        assert record.next in (StepKind.WAIT, StepKind.ASK)
        return
    assert not record.pause_min or record.next is StepKind.RESUBMIT
    if record.merged is not None:
        assert record.next is StepKind.DONE
    if record.failed is not None or record.cancelled is not None:
        assert record.next is not StepKind.WAIT or not record.cancelled, "an end is no wait"


@pytest.mark.parametrize("code", [*HoldReason, *Cause])
def test_each_hold_and_each_cause_has_sentences(code: HoldReason | Cause):
    assert CODE.fullmatch(code.record.code)
    assert code.record.text.endswith((".", "]"))


def tables_in(source: Source) -> Iterator[str]:
    """Displays of a file that list at least two codes, or give values to them."""
    if is_in(source.path, RECORDS, *RULES):
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Dict(keys=members):
                pass
            case ast.Set(elts=members) | ast.Tuple(elts=members) | ast.List(elts=members):
                pass
            case _:
                continue
        listed = [ast.unparse(each) for each in members if each is not None and is_code(each)]
        if len(listed) > 1:
            yield f"{source.path}:{node.lineno}: {', '.join(listed)}: use a field of the record"


def is_code(node: ast.expr) -> bool:
    """Whether an expression is a code, such as `Reason.DRAFT`."""
    match node:
        case ast.Attribute(value=ast.Name(id=name)):
            return name in ENUMS
        case _:
            return False


def sentences_read_by(source: Source) -> Iterator[str]:
    """Sentences of records that a file of the engine reads."""
    if not is_in(source.path, ENGINE):
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="record"), attr=name):
                is_read = name in FIELDS - READ_BY_ENGINE
            case ast.Attribute(attr=name):
                is_read = name in SENTENCES
            case _:
                continue
        if is_read:
            yield f"{source.path}:{node.lineno}: {name}: the engine reads no sentence"


def test_no_file_but_the_records_and_the_rules_lists_codes():
    assert [found for source in PRODUCT_SOURCES for found in tables_in(source)] == []


def test_the_engine_reads_no_sentence():
    assert [found for source in PRODUCT_SOURCES for found in sentences_read_by(source)] == []


@pytest.mark.parametrize(
    ("path", "text", "is_found"),
    [
        ("service/mergequeue/wording/x.py", "X = {Reason.DRAFT: 1, Reason.UNSIGNED: 2}", True),
        ("service/dashboard/x.py", "X = frozenset({Reason.DRAFT, Reason.UNSIGNED})", True),
        ("service/process/x.py", "X = (HoldReason.FREEZE, HoldReason.BASE_RED)", True),
        ("service/mergequeue/engine/x.py", "X = {Reason.DRAFT, Reason.UNSIGNED}", False),
        ("service/mergequeue/wording/x.py", "x = reason is Reason.DRAFT", False),
    ],
)
def test_a_planted_table_is_found(path: str, text: str, is_found: bool):
    assert bool(list(tables_in(Source(path, text)))) is is_found


@pytest.mark.parametrize(
    ("path", "text", "is_found"),
    [
        ("service/mergequeue/engine/x.py", "x = reason.record.pending", True),
        ("service/mergequeue/engine/x.py", "x = need.goal", True),
        ("service/mergequeue/engine/x.py", "x = reason.record.who", False),
        ("service/mergequeue/wording/x.py", "x = need.goal", False),
    ],
)
def test_a_planted_sentence_is_found(path: str, text: str, is_found: bool):
    assert bool(list(sentences_read_by(Source(path, text)))) is is_found


def files_that_name() -> dict[str, set[str]]:
    """By code, the files with its record or a rule about it; `make docs` writes the enum."""
    found = defaultdict[str, set[str]](set)
    for family in records.FAMILIES:
        for record in family.RECORDS:
            found[record.code].add(family.__name__)
    for source in PRODUCT_SOURCES:
        for node in ast.walk(source.tree):
            match node:
                case ast.Attribute(value=ast.Name(id="Reason"), attr=name):
                    if name.lower() in records.REASONS:
                        found[name.lower()].add(source.path)
                case _:
                    pass
    return found


def test_a_reason_is_named_in_few_files(record_property):
    counts = {code: len(paths) for code, paths in files_that_name().items()}
    median = statistics.median(counts.values())
    record_property("files_that_name_a_reason", median)
    most = max(counts, key=lambda code: counts[code])
    print(f"median of files that name a reason: {median:g}; most: {counts[most]} ({most})")
    assert median <= NAMING_MEDIAN_MAX


def test_every_field_of_a_record_is_used():
    listed = records.REASONS.values()
    unused = {
        field.name
        for field in fields(Record)
        if all(getattr(record, field.name) == field.default for record in listed)
    }
    assert unused == set()
