"""Pages of the lists of tests: tokens hold places, not offsets (docs/design/http.md 8)."""

from datetime import timedelta

from tests.contract.api.flaky.tested import names_of

FIVE = ("a", "b", "c", "d", "e")


async def five_flaky(tested):
    """Five flaky tests; `a` hit most pull requests, `e` fewest."""
    for hit, name in enumerate(reversed(FIVE), 1):
        await tested.ran(prs=tuple(range(hit)), **{name: "f"})
        await tested.judged(name, "flaky")


async def walked(ask, size, way="next_page_token", token=""):
    """The names of every page that a kind of token leads to, and the last page."""
    pages = []
    while True:
        page = await ask(size=size, token=token)
        pages.append(names_of(page))
        token = page["page"][way]
        if not token:
            return pages, page["page"]


async def test_every_test_comes_once_at_any_size_forwards_and_backwards(tested):
    await five_flaky(tested)
    for size in range(1, 7):
        pages, last = await walked(tested.unhealthy, size)
        assert [name for page in pages for name in page] == list(FIVE)
        assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
        assert (last["total_rows"], last["total_pages"]) == (5, len(pages))
        assert last["page_index"] == len(pages) - 1
        if len(pages) > 1:
            back, first = await walked(
                tested.unhealthy, size, "prev_page_token", last["last_page_token"]
            )
            assert back == pages[::-1]
            assert first["page_index"] == 0
        else:
            assert last["last_page_token"] == ""


async def test_every_token_is_there_where_there_is_such_a_page_and_nowhere_else(tested):
    await five_flaky(tested)
    first = (await tested.unhealthy(size=2))["page"]
    second = (await tested.unhealthy(size=2, token=first["next_page_token"]))["page"]
    third = (await tested.unhealthy(size=2, token=second["next_page_token"]))["page"]
    shown = [
        (page["page_index"], *(bool(page[f"{way}_page_token"]) for way in ("prev", "next", "last")))
        for page in (first, second, third)
    ]
    assert shown == [(0, False, True, True), (1, True, True, True), (2, True, False, True)]


async def test_tokens_stay_while_rows_are_put_in_and_taken_out(tested):
    await five_flaky(tested)
    first = await tested.unhealthy(size=2)
    second = await tested.unhealthy(size=2, token=first["page"]["next_page_token"])
    assert names_of(second) == ["c", "d"]
    await tested.ran(prs=tuple(range(90, 99)), new="f")
    await tested.judged("new", "flaky")
    await tested.judged("b", "healthy")
    assert names_of(await tested.unhealthy(size=2)) == ["new", "a"]
    again = await tested.unhealthy(size=2, token=first["page"]["next_page_token"])
    assert names_of(again) == ["c", "d"]
    rest = await tested.unhealthy(size=2, token=second["page"]["next_page_token"])
    # What came later is behind all others, whatever it would hit today.
    assert names_of(rest) == ["e", "new"]
    before = await tested.unhealthy(size=2, token=again["page"]["prev_page_token"])
    assert names_of(before) == ["a"]


async def test_a_page_that_lost_its_rows_leads_on(tested):
    await five_flaky(tested)
    first = await tested.unhealthy(size=4)
    end = await tested.unhealthy(size=4, token=first["page"]["next_page_token"])
    await tested.judged("e", "healthy")
    empty = await tested.unhealthy(size=4, token=first["page"]["next_page_token"])
    assert (names_of(empty), empty["page"]["next_page_token"]) == ([], "")
    back = await tested.unhealthy(size=4, token=empty["page"]["prev_page_token"])
    assert names_of(back) == ["a", "b", "c", "d"]
    for name in "abcd":
        await tested.judged(name, "healthy")
    await tested.judged("e", "flaky")
    first = await tested.unhealthy(size=4, token=end["page"]["prev_page_token"])
    assert (names_of(first), first["page"]["prev_page_token"]) == (["e"], "")


async def test_the_size_may_change_between_pages(tested):
    await five_flaky(tested)
    first = await tested.unhealthy(size=3)
    then = await tested.unhealthy(size=1, token=first["page"]["next_page_token"])
    assert (names_of(then), then["page"]["page_index"]) == (["d"], 3)
    back = await tested.unhealthy(size=2, token=then["page"]["prev_page_token"])
    assert (names_of(back), back["page"]["page_index"]) == (["b", "c"], 0)


async def test_a_token_is_good_for_a_day_for_its_own_list_alone(tested):
    await five_flaky(tested)
    token = (await tested.unhealthy(size=2))["page"]["next_page_token"]
    other = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    query = {"page_size": 2, "page_token": token}
    span = {"start_time": "2026-03-02T00:00:00Z", "end_time": "2026-03-02T14:00:00Z"}
    refused = [
        await tested.post("list-unhealthy-tests", status="BROKEN", page_query=query),
        await tested.post("list-quarantined-tests", page_query=query),
        await tested.asked_elsewhere("list-unhealthy-tests", status="FLAKY", page_query=query),
        await tested.post("list-failing-tests", **span, page_query=query),
        await tested.post(
            "list-unhealthy-tests", status="FLAKY", page_query=query | {"page_token": other}
        ),
        await tested.post(
            "list-unhealthy-tests", status="FLAKY", page_query=query | {"page_token": "hgp1_"}
        ),
    ]
    for answer in refused:
        assert answer.is_problem(400, "invalid_page_token")
        assert answer.json["detail"] == refused[0].json["detail"]
    tested.clock.present += timedelta(hours=24, seconds=1)
    answer = await tested.post("list-unhealthy-tests", status="FLAKY", page_query=query)
    assert answer.is_problem(400, "page_token_expired")


async def test_failing_tests_come_in_pages_too(tested):
    await tested.ran(a="ffff", b="fff", c="ff", d="f", e="f")
    # Those that failed equally often come in the order in which they were first seen.
    assert tested.id_of("e") < tested.id_of("d")
    for size in (1, 2, 3):
        pages, last = await walked(tested.failing, size)
        assert [name for page in pages for name in page] == ["a", "b", "c", "d", "e"]
        back, _ = await walked(tested.failing, size, "prev_page_token", last["last_page_token"])
        assert back == pages[::-1]


async def test_quarantined_tests_come_in_pages_too(tested):
    await tested.settings(quarantine_enabled=True, auto_quarantine_enabled=True)
    await tested.ran(a="f", b="f", c="f", d="f", e="f")
    for hours, (name, health) in enumerate([("a", "broken"), ("c", "flaky"), ("e", "broken")]):
        await tested.judged(name, health, hours_ago=hours + 1)
    for name in ("b", "d"):
        said = {"test_id": tested.id_of(name), "override": "ALWAYS_QUARANTINE", "reason": "x"}
        await tested.done("set-quarantine-override", **said)

    async def ask(size, token):
        page = await tested.quarantined(size, token)
        return {"tests": page["quarantined_tests"], "page": page["page"]}

    for size in (1, 2, 3, 5):
        pages, last = await walked(ask, size)
        found = [name for page in pages for name in page]
        assert (sorted(found[:2]), found[2:]) == (["b", "d"], ["a", "c", "e"])
        assert last["total_rows"] == 5
        if last["last_page_token"]:
            back, _ = await walked(ask, size, "prev_page_token", last["last_page_token"])
            assert back == pages[::-1]


async def test_tests_that_come_while_pages_are_read_neither_repeat_nor_hide_others(tested):
    there = {"a": "ffffff", "b": "fffff", "c": "ffff", "d": "fff", "e": "ff"}
    await tested.ran(**there)
    found, token, new = [], "", 0
    while True:
        page = await tested.failing(size=1, token=token)
        found += names_of(page)
        assert page["page"]["total_rows"] == len(there) + new
        token = page["page"]["next_page_token"]
        if not token:
            break
        if new < 8:
            # One goes before the pages that were read, one behind them.
            await tested.ran(**{f"early{new}": "f" * 9, f"late{new}": "f"})
            new += 2
    assert [name for name in found if name in there] == list(there)
    assert len(found) == len(set(found))
