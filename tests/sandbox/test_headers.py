"""Row Headers: paging, conditional reads, limits, and what a rename does to addresses."""

from tests.sandbox.client import REPO


async def test_lists_come_in_pages_with_links(sandbox, app):
    for number in range(5):
        await sandbox.act("open", "bob", REPO, files={f"{number}.txt": "x"})
    answer = await app.call("GET", f"/repos/{REPO}/pulls?per_page=2&page=2")
    assert [one["number"] for one in answer.body] == [3, 2]
    link = answer.headers["Link"]
    for word, page in {"prev": 1, "first": 1, "next": 3, "last": 3}.items():
        assert f'page={page}>; rel="{word}"' in link
    following = link.partition('rel="prev"')[0] + link
    assert f"{sandbox.url}/api/v3/repos/{REPO}/pulls?per_page=2&page=" in following


async def test_a_page_holds_a_hundred_at_most(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    for number in range(101):
        await sandbox.act("comment", "bob", REPO, number=pull["number"], body=f"{number}")
    path = f"/repos/{REPO}/issues/{pull['number']}/comments"
    assert len(await app.get(f"{path}?per_page=500")) == 100
    assert len(await app.get(path)) == 30


async def test_an_unchanged_answer_is_304_and_costs_nothing(app):
    path = f"/repos/{REPO}/branches/main"
    first = await app.call("GET", path)
    again = await app.call("GET", path, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    before = int(first.headers["X-RateLimit-Remaining"])
    assert int(again.headers["X-RateLimit-Remaining"]) == before
    assert first.headers["X-GitHub-Request-Id"] != again.headers["X-GitHub-Request-Id"]


async def test_an_old_name_redirects_reads_and_writes(sandbox, app):
    await sandbox.act("rename", "alice", REPO, to="gadgets")
    read = await app.call("GET", f"/repos/{REPO}/branches/main")
    assert read.status == 301
    assert read.headers["Location"] == f"{sandbox.url}/api/v3/repos/octo/gadgets/branches/main"
    body = {"title": "t", "head": "x", "base": "main"}
    write = await app.call("POST", f"/repos/{REPO}/pulls", body)
    assert write.status == 307


async def test_what_is_not_imitated_says_so(app):
    answer = await app.call("GET", f"/repos/{REPO}/traffic/views")
    assert (answer.status, answer.headers["X-Sandbox"]) == (404, "not-imitated")
    assert answer.body["message"] == "Not Found"


async def test_a_missing_thing_does_not_say_that_it_is_not_imitated(app):
    answer = await app.call("GET", f"/repos/{REPO}/pulls/99")
    assert answer.status == 404
    assert "X-Sandbox" not in answer.headers


async def test_a_body_that_is_no_json_is_400(app):
    answer = await app.call("POST", f"/repos/{REPO}/merges", "not an object")
    assert answer.status == 400


async def test_another_api_version_is_refused(app):
    answer = await app.call("GET", f"/repos/{REPO}", **{"X-GitHub-Api-Version": "2099-01-01"})
    assert answer.status == 400
