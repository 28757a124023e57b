"""Row Auth of the behavior table: keys, tokens, permissions, and what one may not know of."""

from datetime import timedelta

import pytest

from tests.sandbox.client import REPO, Client, app_token, as_app


@pytest.mark.parametrize(
    ("issued", "expires", "said"),
    [
        (0, 700, "too far in the future"),
        (-700, -10, "future time"),
        (300, 540, "'Issued at' claim"),
    ],
)
async def test_a_jwt_with_wrong_times_is_refused(sandbox, http, issued, expires, said):
    client = Client(sandbox, http, app_token(sandbox, issued=issued, expires=expires))
    answer = await client.call("GET", "/app")
    assert answer.status == 401
    assert said in answer.body["message"]


async def test_a_jwt_of_another_key_is_refused(sandbox, http):
    forged = app_token(sandbox)[:-6] + "AAAAAA"
    answer = await Client(sandbox, http, forged).call("GET", "/app")
    assert (answer.status, answer.body["message"]) == (
        401,
        "A JSON web token could not be decoded",
    )


async def test_an_app_knows_itself_by_its_jwt(jwt_client, sandbox):
    shown = await jwt_client.get("/app")
    assert (shown["id"], shown["slug"]) == (sandbox.app_id, "headgate")


async def test_an_installation_token_has_520_characters_and_lives_an_hour(app, sandbox):
    assert len(app.token) == 520
    assert (await app.call("GET", f"/repos/{REPO}")).status == 200
    later = sandbox.world.timeline.callers_now() + timedelta(seconds=3601)
    sandbox.world.timeline.callers_now = lambda: later
    assert (await app.call("GET", f"/repos/{REPO}")).status == 401


async def test_a_token_is_scoped_to_the_repositories_it_names(sandbox, http):
    await sandbox.seed(repositories=[{"full_name": "octo/other", "private": True}])
    chosen = sandbox.repository(REPO)
    client = await as_app(sandbox, http, repository_ids=[chosen.id])
    assert (await client.call("GET", f"/repos/{REPO}")).status == 200
    assert (await client.call("GET", "/repos/octo/other")).status == 404
    listed = await client.get("/installation/repositories")
    assert [one["full_name"] for one in listed["repositories"]] == [REPO]


async def test_a_token_writes_nowhere_but_where_it_is_scoped(sandbox, http):
    await sandbox.seed(repositories=[{"full_name": "octo/public"}])
    client = await as_app(sandbox, http, repository_ids=[sandbox.repository(REPO).id])
    main = sandbox.repository("octo/public").git.branch("main")
    body = {"ref": "refs/heads/new", "sha": main}
    assert (await client.call("GET", "/repos/octo/public")).status == 200
    assert (await client.call("POST", "/repos/octo/public/git/refs", body)).status == 403


async def test_a_token_is_scoped_to_the_permissions_it_names(sandbox, http):
    client = await as_app(sandbox, http, permissions={"metadata": "read", "contents": "read"})
    main = sandbox.repository(REPO).git.branch("main")
    body = {"ref": "refs/heads/new", "sha": main}
    assert (await client.call("POST", f"/repos/{REPO}/git/refs", body)).status == 403
    assert (await client.call("GET", f"/repos/{REPO}/git/ref/heads/main")).status == 200


async def test_a_missing_permission_is_403(sandbox, app):
    main = sandbox.repository(REPO).git.branch("main")
    await sandbox.act("permissions", "alice", REPO, permissions={"metadata": "read"})
    body = {"ref": "refs/heads/new", "sha": main}
    answer = await app.call("POST", f"/repos/{REPO}/git/refs", body)
    assert (answer.status, answer.body["message"]) == (
        403,
        "Resource not accessible by integration",
    )


async def test_a_read_permission_does_not_write(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    path = f"/repos/{REPO}/statuses/{pull['head']}"
    assert (await app.call("POST", path, {"state": "success"})).status == 403
    assert (await app.call("GET", f"/repos/{REPO}/commits/{pull['head']}/statuses")).status == 200


async def test_workflow_files_need_the_workflows_permission(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={".github/workflows/ci.yml": "on: push\n"})
    body = {"base": "main", "head": pull["head"]}
    answer = await app.call("POST", f"/repos/{REPO}/merges", body)
    assert answer.status == 403
    assert "without `workflows` permission" in answer.body["message"]
    assert "`.github/workflows/ci.yml`" in answer.body["message"]


async def test_a_suspended_installation_is_refused_everywhere(sandbox, app, jwt_client):
    await sandbox.act("suspend", "alice", REPO)
    answer = await app.call("GET", f"/repos/{REPO}")
    assert (answer.status, answer.body["message"]) == (403, "This installation has been suspended")
    installation = await jwt_client.get(f"/repos/{REPO}/installation")
    path = f"/app/installations/{installation['id']}/access_tokens"
    assert (await jwt_client.call("POST", path, {})).status == 403
    await sandbox.act("suspend", "alice", REPO, suspended=False)
    assert (await app.call("GET", f"/repos/{REPO}")).status == 200


async def test_a_foreign_private_repository_is_404(sandbox, person):
    await sandbox.seed(repositories=[{"full_name": "octo/secret", "private": True}])
    assert (await person("dave").call("GET", "/repos/octo/secret")).status == 404
    assert (await person("carol").call("GET", "/repos/octo/secret")).status == 200


async def test_nobody_may_read_what_is_public_and_change_nothing(sandbox, http):
    nobody = Client(sandbox, http, None)
    assert (await nobody.call("GET", f"/repos/{REPO}")).status == 200
    answer = await nobody.call("POST", f"/repos/{REPO}/issues/1/comments", {"body": "hello"})
    assert answer.status == 401


@pytest.mark.parametrize(
    ("login", "permission", "role"),
    [
        ("alice", "write", "maintain"),
        ("bob", "write", "write"),
        ("carol", "read", "read"),
        ("dave", "none", "none"),
    ],
)
async def test_the_role_name_says_more_than_the_permission(app, login, permission, role):
    shown = await app.get(f"/repos/{REPO}/collaborators/{login}/permission")
    assert (shown["permission"], shown["role_name"]) == (permission, role)
    assert shown["user"]["login"] == login


async def test_a_user_is_found_by_id(sandbox, app):
    bob = sandbox.world.account("bob")
    assert (await app.get(f"/user/{bob.id}"))["login"] == "bob"
    assert (await app.call("GET", "/user/1")).status == 404
