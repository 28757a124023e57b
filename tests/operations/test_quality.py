"""How well tests are judged here, by a replay of what is stored, and what settings would change."""

from datetime import timedelta

import pytest

from service.errors import Overloaded
from service.parser_process import Limits
from service.testhealth.operations import quality, remove, settings
from service.testhealth.operations.quality import FRESH, MASKS, Preview
from service.vocabulary import SYSTEM, Health, QuarantineForgives, Sensitivity, Sha
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW

DAY = timedelta(days=1)
DAYS, TURNS = 10, 3
OTHERS = [f"sound_{nth}" for nth in range(12)]
FLIPS = (12, 22)
"""The runs in which `mail` fails and passes again."""

NEW, LATE = 15, 27
"""The run from which on there is `cart`, and the one in which it does so."""


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store, at=NOW - timedelta(days=DAYS))


def endless(*_):
    """A replay that never ends."""
    while True:
        pass


async def some_days(stage, **meta):
    """Three runs a day, each of a pull request. Return the answers to their uploads."""
    answers = []
    for nth in range(DAYS * TURNS):
        stage.clock.present = NOW - timedelta(days=DAYS, hours=-8 * nth)
        letters = {
            "mail": "FP" if nth in FLIPS else "P",
            "cart": "FP" if nth == LATE else "P" * (nth >= NEW),
        }
        tests = {**dict.fromkeys(OTHERS, "P"), **letters}
        given = {"sha": Sha(f"{nth:040x}"), "run_id": f"{nth}", "pr_number": nth + 1, **meta}
        answers.append(await stage.ran(tests, **given))
    stage.clock.present = NOW
    return answers


async def judged(stage):
    """The past under the present settings."""
    found = await quality.of_repository(stage.runtime, stage.repository)
    assert found.now is not None
    return found, found.now


async def previewed(stage, **changes):
    return await quality.preview(stage.runtime, stage.repository, changes)


async def test_a_replay_of_what_is_stored_confirms_flags_and_says_what_settings_would_do(stage):
    empty = await quality.of_repository(stage.runtime, stage.repository)
    assert empty == Preview(NOW - DAYS * DAY, None)
    await some_days(stage)
    found, past = await judged(stage)
    counts = past.quality
    assert (counts.confirmed, counts.unconfirmed, counts.open) == (1, 0, 1)
    assert (counts.caught, counts.missed, counts.unclear) == (1, 2, 0)
    assert [found.tests[each.no].name for each in past.missed] == ["cart", "mail"]
    assert [found.tests[no].name for no in past.flaky] == ["mail", "cart"]
    assert past.since == (NOW - DAYS * DAY).replace(hour=0)
    assert found.then is None

    strict = await previewed(stage, sensitivity=Sensitivity.STRICT, name_masks=("a*",))
    assert strict.now == past
    assert (strict.now.quality.flags, strict.then.quality.flags) == (2, 1)
    assert [case.name for case in strict.fewer] == ["cart"]
    assert (strict.more, strict.not_replayed, strict.notes) == ((), ("name_masks",), (MASKS,))
    state = (await stage.states())["cart"][0]
    assert state.value is Health.FLAKY


async def test_a_preview_counts_failures_that_quarantine_would_excuse(stage):
    await some_days(stage)
    stage.clock.present = NOW - timedelta(hours=1)
    failed = {"sha": Sha("f" * 40), "run_id": "400", "pr_number": 400}
    await stage.ran({**dict.fromkeys(OTHERS, "P"), "mail": "F"}, **failed)
    stage.clock.present = NOW
    on = {"quarantine_enabled": True, "auto_quarantine_enabled": True}
    found = await previewed(stage, **on)
    assert (found.now.excused, found.now.failures) == (0, 1)
    assert (found.then.excused, found.then.failures) == (1, 1)
    broken = await previewed(stage, **on, auto_quarantine_statuses=(Health.BROKEN,))
    assert broken.then.excused == 0
    await settings.update(stage.runtime, stage.repository, on, SYSTEM)
    any_failure = await previewed(stage, quarantine_forgives=QuarantineForgives.ANY_FAILURE)
    assert (any_failure.now.excused, any_failure.then.excused) == (1, 1)


async def test_a_preview_of_stable_branches_reads_branches_anew(stage):
    given = {"pr_number": None, "branch": "release/2"}
    await some_days(stage, **given)
    for nth in range(6):
        stage.clock.present = NOW + timedelta(hours=nth)
        tests = {**dict.fromkeys(OTHERS, "P"), "mail": "P", "shop": "F"}
        await stage.ran(tests, sha=Sha(f"{900 + nth:040x}"), run_id=f"{900 + nth}", **given)
    found = await previewed(stage, stable_branches=("release/*",))
    assert (found.now.broken, len(found.then.broken)) == ((), 1)
    assert [case.name for case in found.more] == ["shop"]
    assert found.notes == (quality.NO_POSITIONS,)


async def test_an_answer_is_kept_until_the_evidence_changes_and_ten_minutes_are_over(stage):
    answers = await some_days(stage)
    first = await quality.of_repository(stage.runtime, stage.repository)
    assert await quality.of_repository(stage.runtime, stage.repository) is first
    await remove.remove(stage.runtime, stage.repository, answers[FLIPS[1]].upload_id, SYSTEM)
    assert await quality.of_repository(stage.runtime, stage.repository) is first
    stage.clock.present = NOW + FRESH
    async with stage.runtime.replays:
        with pytest.raises(Overloaded, match="Another replay"):
            await quality.of_repository(stage.runtime, stage.repository)
    _, past = await judged(stage)
    assert past.quality.confirmed == 0


async def test_uploads_beyond_the_bound_are_left_out_and_counted(stage, monkeypatch):
    monkeypatch.setattr(quality, "UPLOADS_MAX", 10)
    monkeypatch.setattr(quality, "READ_AT_ONCE", 4)
    await some_days(stage)
    found, past = await judged(stage)
    assert (found.left_out, past.tests) == (DAYS * TURNS - 10, 2)


async def test_a_replay_that_takes_too_long_is_stopped_and_says_so(stage, monkeypatch):
    await some_days(stage)
    monkeypatch.setattr(quality, "LIMITS", Limits(computing_s=1, memory_bytes=1 << 30))
    monkeypatch.setattr(quality, "replayed", endless)
    with pytest.raises(Overloaded, match=r"history of octo/widgets .* and was stopped"):
        await quality.of_repository(stage.runtime, stage.repository)


async def test_nobody_waits_longer_for_a_replay_than_two_minutes(stage, monkeypatch):
    await some_days(stage)
    monkeypatch.setattr(quality, "WAIT_S", 0)
    with pytest.raises(Overloaded, match="longer than 0 seconds and was stopped"):
        await quality.of_repository(stage.runtime, stage.repository)
    assert not stage.runtime.replays.locked()
