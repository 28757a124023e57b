"""The token endpoints: what they take, what they answer, and who reaches what."""

from datetime import datetime, timedelta
from typing import Any

import pytest

SELF = [
    "id",
    "name",
    "role",
    "organization",
    "repositories",
    "created_at",
    "expires_at",
    "last_used_at",
    "open_entries",
    "ci_minutes",
]
NOBODY = "0000000000"


@pytest.fixture
def gears(world) -> dict[str, str]:
    """The repository that the narrow token is limited to."""
    return {"host": world.host, "owner": world.owner, "name": "gears"}


async def make(client, token: str | None = None, **more: Any) -> dict[str, Any]:
    """A new token with its secret."""
    return await client.done("tokens/create", {"name": "x", "role": "read", **more}, token)


async def own(client, secret: str) -> Any:
    """What a token says of itself."""
    return await client.ask("GET", "/v1/tokens/self", secret)


async def listed(client, token: str | None = None) -> list[dict[str, Any]]:
    """Every live token, page after page."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        body = {"take": 100, "cursor": cursor}
        answer = await client.done("tokens/list", body, token)
        found += answer["tokens"]
        cursor = answer.get("next_cursor")
    return found


def days_between(made: dict[str, Any]) -> float:
    begin, end = (datetime.fromisoformat(made[name]) for name in ("created_at", "expires_at"))
    return (end - begin) / timedelta(days=1)


async def test_a_new_token_is_answered_with_its_secret_and_works_at_once(client, world):
    made = await make(client, name="deploys", role="QUEUE")
    assert list(made) == [*SELF, "token"]
    assert (made["name"], made["role"], made["repositories"]) == ("deploys", "queue", None)
    assert made["organization"] == {"slug": "octo", "host": world.host}
    assert (days_between(made), made["last_used_at"]) == (90, None)
    assert made["token"].startswith(f"hgt_{made['id']}_")
    told = await own(client, made["token"])
    assert (told.status, list(told.json), told.json["id"]) == (200, SELF, made["id"])


@pytest.mark.parametrize(
    ("sent", "days"), [({}, 90), ({"expires_in_days": 1}, 1), ({"expires_in_days": 366.0}, 366)]
)
async def test_a_token_ends_after_so_many_days(client, sent, days):
    assert days_between(await make(client, **sent)) == days


async def test_a_token_without_end_is_made_only_when_asked_for(client):
    assert (await make(client, never_expires=True))["expires_at"] is None
    assert (await make(client, never_expires=False))["expires_at"] is not None
    both = {"name": "x", "role": "read", "never_expires": True, "expires_in_days": 3}
    assert (await client.post("tokens/create", both)).is_problem(422, "conflicting_fields")


async def test_a_token_may_be_limited_to_repositories(client, gears):
    named = {**gears, "owner": gears["owner"].upper()}
    made = await make(client, repositories=[named, gears])
    assert made["repositories"] == [gears]
    nothing = await client.post("getQueue", client.named(), made["token"])
    assert nothing.is_problem(404, "repository_not_found")


@pytest.mark.parametrize(
    ("sent", "field", "code"),
    [
        ({"name": ""}, "/name", "length"),
        ({"name": "x" * 101}, "/name", "length"),
        ({"name": "a\nb"}, "/name", "format"),
        ({"name": None}, "/name", "type"),
        ({"role": "owner"}, "/role", "enum"),
        ({"expires_in_days": 0}, "/expires_in_days", "range"),
        ({"expires_in_days": 367}, "/expires_in_days", "range"),
        ({"expires_in_days": "3"}, "/expires_in_days", "type"),
        ({"never_expires": "true"}, "/never_expires", "type"),
        ({"repositories": [{}] * 501}, "/repositories", "length"),
        ({"repositories": ["octo/x"]}, "/repositories/0", "type"),
        ({"repositories": [{"host": "h", "owner": "o"}]}, "/repositories/0/name", "missing"),
    ],
)
async def test_a_faulty_wish_is_named(client, sent, field, code):
    answer = await client.post("tokens/create", {"name": "x", "role": "read", **sent})
    assert answer.is_problem(400, "invalid_field")
    assert (field, code) in [(each["field"], each["code"]) for each in answer.json["errors"]]


async def test_name_and_role_are_required(client):
    answer = await client.post("tokens/create", {})
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [
        ("/name", "missing"),
        ("/role", "missing"),
    ]


async def test_live_tokens_are_listed_oldest_first_without_their_secrets(client):
    made = [await make(client, name=f"n{n}") for n in range(3)]
    await client.done("tokens/revoke", {"id": made[1]["id"]})
    found = await listed(client)
    assert {tuple(each) for each in found} == {tuple(SELF)}
    assert [each["created_at"] for each in found] == sorted(each["created_at"] for each in found)
    ids = [each["id"] for each in found]
    assert [each["id"] in ids for each in made] == [True, False, True]


async def test_the_list_comes_in_pages(client):
    for _ in range(3):
        await make(client)
    whole = [each["id"] for each in await listed(client)]
    first = await client.done("tokens/list", {"take": 2})
    assert [each["id"] for each in first["tokens"]] == whole[:2]
    second = await client.done("tokens/list", {"take": 2, "cursor": first["next_cursor"]})
    assert [each["id"] for each in second["tokens"]] == whole[2:4]
    assert "next_cursor" not in await client.done("tokens/list", {"take": 100})


@pytest.mark.parametrize("cursor", ["x", "hgp1_eyJ2IjoxfQ", "hgp1_"])
async def test_a_cursor_of_others_is_refused(client, cursor):
    answer = await client.post("tokens/list", {"cursor": cursor})
    assert answer.is_problem(400, "invalid_page_token")


async def test_another_organizations_cursor_is_refused(client, world):
    for _ in range(2):
        await make(client)
    cursor = (await client.done("tokens/list", {"take": 1}))["next_cursor"]
    answer = await client.post("tokens/list", {"cursor": cursor}, world.foreign_token)
    assert answer.is_problem(400, "invalid_page_token")


@pytest.mark.parametrize("take", [0, 101, "1"])
async def test_a_page_has_one_to_a_hundred_tokens(client, take):
    answer = await client.post("tokens/list", {"take": take})
    assert answer.is_problem(400, "invalid_field")


async def test_a_successor_has_equal_rights_and_the_old_one_works_on_for_a_while(client, gears):
    old = await make(client, name="ci", role="ci", repositories=[gears], expires_in_days=7)
    new = await client.done("tokens/rotate", {"id": old["id"]})
    assert list(new) == [*SELF, "token"]
    assert (new["name"], new["role"], new["repositories"]) == ("ci", "ci", [gears])
    assert days_between(new) == pytest.approx(7, abs=1e-6)
    assert new["id"] != old["id"]
    told = [(await own(client, each["token"])).json for each in (old, new)]
    ends = datetime.fromisoformat(told[0]["expires_at"])
    assert ends - datetime.fromisoformat(new["created_at"]) == timedelta(hours=24)
    assert told[1]["expires_at"] == new["expires_at"]


async def test_without_an_overlap_the_old_one_ends_at_once(client):
    old = await make(client)
    new = await client.done("tokens/rotate", {"id": old["id"], "overlap_hours": 0})
    assert (await own(client, old["token"])).status == 401
    assert (await own(client, new["token"])).status == 200
    again = await client.post("tokens/rotate", {"id": old["id"]})
    assert again.is_problem(404, "token_not_found")


@pytest.mark.parametrize("hours", [-1, 25, "1", 1.5])
async def test_an_overlap_has_at_most_a_day(client, hours):
    answer = await client.post("tokens/rotate", {"id": NOBODY, "overlap_hours": hours})
    assert answer.is_problem(400, "invalid_field")


async def test_a_revoked_token_ends_with_the_next_request_and_stays_so(client):
    made = await make(client)
    assert (await own(client, made["token"])).status == 200
    for _ in range(2):
        assert await client.done("tokens/revoke", {"id": made["id"]}) == {"revoked": True}
        assert (await own(client, made["token"])).status == 401


@pytest.mark.parametrize("name", ["tokens/rotate", "tokens/revoke"])
async def test_a_token_is_named_by_the_ten_characters_of_its_id(client, name):
    assert (await client.post(name, {"id": NOBODY})).is_problem(404, "token_not_found")
    for odd in ("", "x", "hgt_7hQ2mX9aLk", "7hQ2mX9aL_", "7hQ2mX9aLk\n"):
        answer = await client.post(name, {"id": odd})
        assert answer.is_problem(400, "invalid_field")
        assert answer.json["errors"][0]["field"] == "/id"


@pytest.mark.parametrize("name", ["tokens/rotate", "tokens/revoke"])
async def test_a_token_of_another_organization_is_missing(client, world, name):
    made = await make(client)
    hidden = await client.post(name, {"id": made["id"]}, world.foreign_token)
    missing = await client.post(name, {"id": NOBODY}, world.foreign_token)
    assert hidden.is_problem(404, "token_not_found")
    assert without_id(hidden, made["id"]) == without_id(missing, NOBODY)
    assert made["id"] not in [each["id"] for each in await listed(client, world.foreign_token)]
    assert (await own(client, made["token"])).status == 200


@pytest.mark.parametrize("name", ["tokens/rotate", "tokens/revoke"])
async def test_a_limited_token_reaches_none_that_sees_more(client, world, gears, name):
    wide = await make(client)
    hidden = await client.post(name, {"id": wide["id"]}, world.narrow_token)
    assert hidden.is_problem(404, "token_not_found")
    equal = await make(client, repositories=[gears])
    assert (await client.post(name, {"id": equal["id"]}, world.narrow_token)).status == 200


async def test_a_limited_token_lists_those_that_see_no_more_than_itself(client, world, gears):
    wide, equal = await make(client), await make(client, repositories=[gears])
    ids = [each["id"] for each in await listed(client, world.narrow_token)]
    assert equal["id"] in ids
    assert wide["id"] not in ids


async def test_a_limited_token_makes_none_that_sees_more(client, world, gears):
    wish = {"name": "x", "role": "read"}
    for sent in (wish, {**wish, "repositories": None}):
        answer = await client.post("tokens/create", sent, world.narrow_token)
        assert answer.is_problem(422, "scope_exceeds_own")
    for name in (world.repo, "nothing"):
        beyond = {**wish, "repositories": [gears, {**gears, "name": name}]}
        answer = await client.post("tokens/create", beyond, world.narrow_token)
        assert answer.is_problem(404, "repository_not_found")
    made = await make(client, world.narrow_token, repositories=[gears])
    assert made["repositories"] == [gears]


async def test_a_repository_of_another_organization_is_missing(client, world):
    repo = {"host": world.host, "owner": world.owner, "name": world.repo}
    sent = {"name": "x", "role": "read", "repositories": [repo]}
    answer = await client.post("tokens/create", sent, world.foreign_token)
    assert answer.is_problem(404, "repository_not_found")


@pytest.mark.parametrize("name", ["tokens/create", "tokens/list", "tokens/rotate", "tokens/revoke"])
async def test_only_an_admin_deals_with_tokens(client, world, name):
    for token in (world.read_token, world.ci_token, world.queue_token):
        answer = await client.ask("POST", f"/v1/{name}", token, data=b"{")
        assert answer.is_problem(403, "missing_role")
        assert answer.json["required_role"] == "admin"
    assert (await client.ask("POST", f"/v1/{name}", "", data=b"{}")).status == 401
    assert (await client.ask("GET", f"/v1/{name}")).is_problem(405, "method_not_allowed")


def without_id(answer, token_id):
    """The body, but for the id of the request and the id that was asked for."""
    body = {key: value for key, value in answer.json.items() if key != "request_id"}
    return {**body, "detail": body["detail"].replace(token_id, "…")}
