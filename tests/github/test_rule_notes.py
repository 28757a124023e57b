"""Every note that the adapter gives about the rules of a branch has a text."""

from bot.github import protection
from service.mergequeue.wording import rule_notes


def test_each_note_has_a_text():
    noted = [*sorted(protection.NOTED), protection.SELF_REQUIRED, protection.STRICT]
    assert [note.rule for note in rule_notes.rule_notes(noted)] == noted
    assert set(rule_notes.TEXTS) == set(noted)


def test_a_rule_without_a_text_is_left_out():
    assert rule_notes.rule_notes(["unheard_of"]) == ()
