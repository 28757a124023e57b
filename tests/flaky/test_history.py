"""The history of a status is only ever added to (docs/design/detector.md 9)."""

from service.testhealth.detector.history import UNDONE, Change, effective, to_append
from service.vocabulary import Health as Status
from tests.flaky.histories import at

FLAKY = Change(at(1), Status.FLAKY, "flaky")
CALM = Change(at(5), Status.HEALTHY, "calm")
RED = Change(at(9), Status.BROKEN, "red")


def told(written, now, settled_at=None):
    """What is written after that, and what then stands."""
    entries = (*written, *to_append(written, now, settled_at))
    standing = [(each.at, each.value) for each in effective(entries)]
    return entries, standing


def test_what_is_new_is_added():
    assert to_append((FLAKY,), (FLAKY, CALM)) == (CALM,)
    assert to_append((FLAKY, CALM), (FLAKY, CALM)) == ()


def test_a_new_reason_alone_is_no_change():
    assert to_append((FLAKY,), (Change(at(1), Status.FLAKY, "more of it"),)) == ()


def test_late_evidence_corrects_from_its_time_on():
    earlier = Change(at(0), Status.FLAKY, "flaky")
    entries, standing = told((FLAKY, CALM), (earlier, CALM))
    assert [each.is_correction for each in entries] == [False, False, True, False]
    assert standing == [(at(0), Status.FLAKY), (at(5), Status.HEALTHY)]


def test_a_change_that_moved_later_is_taken_back_first():
    later = Change(at(2), Status.FLAKY, "flaky")
    entries, standing = told((FLAKY,), (later,))
    assert entries[1] == Change(at(1), Status.HEALTHY, UNDONE, is_correction=True)
    assert standing == [(at(2), Status.FLAKY)]


def test_a_change_without_evidence_is_taken_back():
    entries, standing = told((FLAKY, CALM, RED), (FLAKY, CALM))
    assert entries[-1] == Change(at(9), Status.HEALTHY, UNDONE, is_correction=True)
    assert standing == [(at(1), Status.FLAKY), (at(5), Status.HEALTHY)]
    assert told(entries, (FLAKY, CALM))[0] == entries


def test_what_is_settled_stands_without_its_evidence():
    assert to_append((FLAKY, CALM, RED), (RED,), at(7)) == ()
    assert to_append((FLAKY, CALM), (RED,), at(7)) == (RED,)
