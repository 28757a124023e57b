"""`/flaky-tests/list-failing-tests` to the letter (docs/design/detector.md 12)."""

from datetime import timedelta

from service.testhealth.detector import figures
from tests.contract.api.flaky.tested import HOUR, names_of, stamp

MS = timedelta(milliseconds=1)
FIGURES = ["most_common_failures", "failure_rate_last_7d", "failure_rate_last_24h"]


async def test_a_record_has_the_fields_of_the_specification_and_no_status_value(tested):
    await tested.ran(a="f")
    await tested.judged("a", "flaky", reason="Why.")
    (record,) = (await tested.failing())["tests"]
    assert list(record)[-3:] == FIGURES
    assert record["status"] == {"reason": "Why.", "timestamp": "2026-03-02T13:00:00.000Z"}
    assert record["most_common_failures"] == [
        {
            "summary": "AssertionError: 10.0 != 10.01",
            "occurrence_count": 1,
            "last_occurrence": "2026-03-02T13:00:00.000Z",
        }
    ]
    assert (record["failure_rate_last_7d"], record["failure_rate_last_24h"]) == (1.0, 1.0)


async def test_every_test_with_a_failed_attempt_is_listed_once_passing_ones_are_not(tested):
    await tested.ran(passed="p", skipped="s", failed="f", retried="fp")
    await tested.ran(failed="f", passed="pp")
    assert names_of(await tested.failing()) == ["failed", "retried"]


async def test_the_range_begins_with_its_start_and_ends_before_its_end(tested):
    at = tested.now - 2 * HOUR
    await tested.ran(hours_ago=2, a="f")

    async def listed(start, end):
        span = {"start_time": stamp(start), "end_time": stamp(end)}
        answer = await tested.done("list-failing-tests", **span, page_query={"page_size": 9})
        return names_of(answer)

    assert await listed(at, at + MS) == ["a"]
    assert await listed(at - HOUR, at) == []
    assert await listed(at + MS, at + HOUR) == []
    assert await listed(at, at) == []


async def test_seven_days_are_allowed_one_millisecond_more_is_not(tested):
    end = tested.now
    for start, is_allowed in [
        (end - timedelta(days=7), True),
        (end - timedelta(days=7) - MS, False),
        (end, True),
        (end + MS, False),
    ]:
        span = {"start_time": stamp(start), "end_time": stamp(end)}
        answer = await tested.post("list-failing-tests", **span, page_query={"page_size": 9})
        if is_allowed:
            assert answer.status == 200
        else:
            assert answer.is_problem(422, "invalid_time_range")


async def test_times_need_an_offset(tested):
    span = {"start_time": "2026-03-02T13:00:00", "end_time": "2026-03-02T15:00:00+02:00"}
    answer = await tested.post("list-failing-tests", **span, page_query={"page_size": 9})
    assert answer.is_problem(400, "invalid_field")
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [
        ("/start_time", "format")
    ]


async def test_failures_are_grouped_most_common_first_at_most_five(tested):
    for n, count in enumerate([1, 3, 2, 1, 1, 1]):
        for _ in range(count):
            await tested.ran(hours_ago=9 - n, a="f", headlines={"a": f"kind {n}"})
    (record,) = (await tested.failing())["tests"]
    shown = [(each["summary"], each["occurrence_count"]) for each in record["most_common_failures"]]
    assert shown == [("kind 1", 3), ("kind 2", 2), ("kind 5", 1), ("kind 4", 1), ("kind 3", 1)]


async def test_groups_are_those_of_the_range_and_summaries_are_short(tested):
    await tested.ran(hours_ago=5, a="f", headlines={"a": "old"})
    await tested.ran(hours_ago=1, a="f", headlines={"a": "x" * 300})
    (record,) = (await tested.failing(hours=2))["tests"]
    assert [each["summary"] for each in record["most_common_failures"]] == ["x" * 200]


async def test_rates_count_attempts_up_to_the_edge_of_their_window(tested):
    week, day = 168, 24
    at = 1 / 3600
    await tested.ran(hours_ago=week, a="f")
    await tested.ran(hours_ago=week - at, a="f")
    await tested.ran(hours_ago=week - 2, a="p")
    await tested.ran(hours_ago=70, a="fp")
    await tested.ran(hours_ago=day, a="p")
    await tested.ran(hours_ago=day - at, a="p")
    await tested.ran(hours_ago=15, a="s")
    await tested.ran(hours_ago=1, a="f")
    await tested.ran(hours_ago=0, a="p")
    await tested.ran(hours_ago=-1 / 60, a="f")
    (record,) = (await tested.failing())["tests"]
    assert record["failure_rate_last_7d"] == round(3 / 8, 6)
    assert record["failure_rate_last_24h"] == round(1 / 3, 6)


async def test_rates_are_exact_at_any_time_of_day(tested):
    start = tested.now
    told = []
    for n in range(60):
        word = "f" if n % 3 == 0 else "p"
        await tested.ran(hours_ago=n * 3.7, a=word)
        told.append((start - n * 3.7 * HOUR, word))
    for hours in (0, 9.99, 10, 10.01, 19):
        tested.clock.present = start + hours * HOUR
        (record,) = (await tested.failing(hours=48))["tests"]
        for field, span in (
            ("failure_rate_last_7d", figures.WEEK),
            ("failure_rate_last_24h", figures.DAY),
        ):
            words = [word for at, word in told if tested.now - span < at <= tested.now]
            assert record[field] == round(words.count("f") / len(words), 6)


async def test_a_test_that_nobody_has_judged_says_so(tested):
    await tested.ran(a="f")
    (record,) = (await tested.failing())["tests"]
    assert record["status"]["reason"] == "Failed. It will be evaluated within a minute."


async def test_pull_requests_hit_are_those_of_the_last_week(tested):
    await tested.ran(hours_ago=160, a="f", prs=(1, 2))
    await tested.ran(hours_ago=100, a="f", prs=(2, 3))
    await tested.ran(hours_ago=1, a="fp", prs=(3,))
    (record,) = (await tested.failing())["tests"]
    assert record["pull_requests_impacted_last_7d"] == 3
    tested.clock.present += 9 * HOUR
    await tested.swept()
    (record,) = (await tested.failing())["tests"]
    assert record["pull_requests_impacted_last_7d"] == 2


async def test_an_upload_that_is_taken_out_is_not_counted_any_more(tested):
    await tested.ran(hours_ago=2, a="ff", b="f")
    await tested.ran(hours_ago=1, b="fff", c="f")
    assert names_of(await tested.failing()) == ["b", "a", "c"]
    await tested.taken_out(hours_ago=1)
    assert names_of(await tested.failing()) == ["a", "b"]


async def test_the_list_moves_with_its_range_and_with_what_comes(tested):
    for hours in (30, 20, 10, 1):
        await tested.ran(hours_ago=hours, **{f"t{hours}": "f" * hours})
    assert names_of(await tested.failing()) == ["t20", "t10", "t1"]
    tested.clock.present += 8 * HOUR
    assert names_of(await tested.failing()) == ["t10", "t1"]
    await tested.ran(hours_ago=9, t1="f" * 10)
    assert names_of(await tested.failing()) == ["t1", "t10"]
    assert names_of(await tested.failing(hours=48)) == ["t30", "t20", "t1", "t10"]
