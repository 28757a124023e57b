"""Our check run in every state: title, status, summary."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.mergequeue.engine import targets
from service.mergequeue.engine.model import RequiredSet
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import bodies, notices
from service.provider.controls import Control
from service.provider.values import (
    CheckReportStatus,
)
from service.text.markdown import Links
from service.vocabulary import SYSTEM
from tests.harness import effort
from tests.harness.expect import expect
from tests.wording import builders, hygiene, stories
from tests.wording.builders import ALICE, TOKEN
from tests.wording.test_comment import STORIES
from tests.wording.test_markdown import foreign


@pytest.mark.parametrize("name", STORIES)
def test_the_check_run(name):
    report = notices.check_report(STORIES[name])
    assert hygiene.faults(report.summary) == []
    assert len(report.buttons) <= 3
    text = f"{report.name} | {report.status.value} | {report.title}\n\n{report.summary}"
    text += "".join(f"\n[{one.label}] {one.description}" for one in report.buttons)
    expect(text).matches(f"check-{name}.txt")


@pytest.mark.parametrize("control", Control)
def test_every_control_fits_a_button(control):
    box, label, description = notices.TEXTS[control]
    assert box
    assert (len(control) <= 20, len(label) <= 20, len(description) <= 40) == (True, True, True)


def test_commands_turned_off_leave_no_box_and_no_button():
    shown = STORIES["testing"]
    config = replace(shown.queue.config, commands_enabled=False)
    shown = replace(shown, queue=replace(shown.queue, config=config))
    assert (notices._boxes_of(shown), notices.buttons(shown)) == ("", ())


def test_a_check_run_belongs_to_one_submission_and_its_head():
    report = notices.check_report(STORIES["testing"])
    assert report.sha == builders.HEAD
    assert report.external_id == STORIES["testing"].entry.id
    assert report.url is None
    pages = "https://queue.example.org/octo/widgets/main"
    linked = replace(STORIES["testing"], links=Links("https://github.com", None, pages))
    assert notices.check_report(linked).url == f"{pages}/pull/482"


@pytest.mark.parametrize(
    ("touched", "words"),
    [
        (targets.ALL, "Impacted targets: all."),
        (targets.of([]), "Impacted targets: none."),
        (targets.of(["//b", "//a"]), "Impacted targets: `//a` and `//b`."),
        (targets.of(f"//{n:02}" for n in range(22)), "`//18`, `//19` and 2 more."),
    ],
)
def test_impacted_targets_are_named_in_lanes(touched, words):
    shown = STORIES["lane"]
    shown = replace(shown, entry=replace(shown.entry, targets=touched))
    assert words in notices.check_report(shown).summary
    single = replace(shown, queue=builders.a_queue())
    assert "Impacted targets" not in notices.check_report(single).summary


ENDINGS = [
    (EntryState.CANCELLED, Reason.USER_REQUESTED, ALICE, CheckReportStatus.CANCELLED),
    (EntryState.CANCELLED, Reason.HEAD_CHANGED, SYSTEM, CheckReportStatus.CANCELLED),
    (EntryState.CANCELLED, Reason.API_REQUESTED, TOKEN, CheckReportStatus.NEUTRAL),
    (EntryState.CANCELLED, Reason.CI_INTERRUPTED, SYSTEM, CheckReportStatus.NEUTRAL),
    (EntryState.MERGED, Reason.LANDED, SYSTEM, CheckReportStatus.SUCCESS),
    (EntryState.MERGED, Reason.MERGED_BY_HAND, ALICE, CheckReportStatus.NEUTRAL),
]


@pytest.mark.parametrize(("state", "reason", "by", "status"), ENDINGS)
def test_only_what_a_person_did_is_shown_as_cancelled(state, reason, by, status):
    assert notices.check_report(stories.ended(state, reason, by=by)).status is status


@pytest.mark.parametrize("reason", [Reason.API_REQUESTED, Reason.CI_INTERRUPTED])
def test_a_check_that_rules_require_lets_nobody_merge_what_was_cancelled(reason):
    """GitHub lets neutral checks pass as required ones."""
    shown = stories.ended(EntryState.CANCELLED, reason, by=SYSTEM)
    required = RequiredSet(notes=("self_required",))
    shown = replace(shown, queue=replace(shown.queue, required=required))
    assert notices.check_report(shown).status is CheckReportStatus.CANCELLED


@settings(max_examples=effort.examples(40))
@given(st.sampled_from(sorted(STORIES)), foreign)
def test_a_title_is_one_short_line_and_the_summary_inert(name, text):
    shown = STORIES[name]
    shown = replace(shown, queue=replace(shown.queue, branch=text * 9, state_reason=text))
    report = notices.check_report(shown)
    assert 0 < len(report.title) <= bodies.TITLE_CHARACTERS_MAX
    assert report.title.isprintable()
    assert hygiene.faults(report.summary) == []
    assert len(report.summary) <= notices.SUMMARY_CHARACTERS_MAX
