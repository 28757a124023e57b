"""Whatever happens to tests while pages are read, each that was there throughout is read once."""

import pytest

from tests.contract.api.flaky.tested import names_of

STAYING = tuple("abcdefgh")
LISTS = ("unhealthy", "failing", "quarantined", "all", "all by time")


async def page_of(tested, name, token):
    """A page of two tests of a list."""
    query = {"page_size": 2, "page_token": token}
    match name:
        case "unhealthy":
            return await tested.unhealthy(size=2, token=token)
        case "failing":
            return await tested.failing(size=2, token=token)
        case "quarantined":
            page = await tested.quarantined(2, token)
            return {"tests": page["quarantined_tests"], "page": page["page"]}
        case "all":
            return await tested.done("list-tests", page_query=query)
    return await tested.done("list-tests", order_by="CI_TIME", page_query=query)


async def something_happens(tested, turn):
    """The last test gets ahead of all, the first falls back, one comes, one goes, one is judged."""
    await tested.ran(prs=tuple(range(50 * turn, 50 * turn + 9)), h="f" * 9)
    await tested.ran(prs=tuple(range(900)), **{f"new{turn}": "fffff"})
    await tested.judged(f"new{turn}", "flaky")
    await tested.judged("gone", "healthy")
    said = {"override": "ALWAYS_QUARANTINE", "reason": "x"}
    if turn % 2:
        said = {"override": "UNSPECIFIED"}
    await tested.done("set-quarantine-override", test_id=tested.id_of("g"), **said)
    # They change places among those that are quarantined.
    await tested.judged("a", "flaky", hours_ago=9 + turn)
    await tested.judged("f", "flaky", hours_ago=0.5 / turn)


@pytest.mark.parametrize("top", [0, 3, 200])
@pytest.mark.parametrize("name", LISTS)
async def test_each_test_that_stays_is_on_exactly_one_page(tested, monkeypatch, name, top):
    monkeypatch.setattr("service.testhealth.operations.settled_tests.TOP_MAX", top)
    await tested.settings(quarantine_enabled=True, auto_quarantine_enabled=True)
    for hit, each in enumerate(reversed((*STAYING, "gone")), 1):
        await tested.ran(prs=tuple(range(hit)), **{each: "f" * (1 + hit)})
        await tested.judged(each, "flaky", hours_ago=hit)
    first = await page_of(tested, name, "")
    found, token, turn = names_of(first), first["page"]["next_page_token"], 0
    while token:
        turn += 1
        assert turn < 20
        if turn < 5:
            await something_happens(tested, turn)
        page = await page_of(tested, name, token)
        found += names_of(page)
        token = page["page"]["next_page_token"]
    assert sorted(each for each in found if each in STAYING) == list(STAYING)
    assert len(found) == len(set(found))


async def test_the_first_page_shows_the_order_of_today_and_the_next_ones_go_on_with_it(tested):
    for hit, each in enumerate(reversed(STAYING), 1):
        await tested.ran(prs=tuple(range(hit)), **{each: "f"})
        await tested.judged(each, "flaky")
    page = await page_of(tested, "unhealthy", "")
    found = names_of(page)
    await tested.ran(prs=tuple(range(90)), h="f")
    while page["page"]["next_page_token"]:
        page = await page_of(tested, "unhealthy", page["page"]["next_page_token"])
        found += names_of(page)
    assert found == list(STAYING)
    assert names_of(await page_of(tested, "unhealthy", "")) == ["h", "a"]
