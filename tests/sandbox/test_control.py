"""The control plane over HTTP, and how the sandbox starts and whom it lets in."""

import pytest

from bot.sandbox import app as apps
from bot.sandbox import command
from bot.sandbox.app import CannotRun, SandboxOptions, running
from tests.sandbox.client import REPO, Client


@pytest.fixture
def control(sandbox, http):
    """Calls of the control plane: method, name, body."""
    client = Client(sandbox, http, None)

    async def call(method, name, body=None, **headers):
        return await client.call(method, f"{sandbox.url}/_sandbox/{name}", body, **headers)

    return call


async def test_a_world_is_seeded_and_played_over_http(sandbox, control, app):
    made = await control("POST", "seed", {"repositories": [{"full_name": "new/repo"}]})
    assert made.body["repositories"][0]["full_name"] == "new/repo"
    act = {"as": "bob", "act": "open", "repo": REPO, "files": {"a.txt": "a"}}
    opened = await control("POST", "acts", act)
    assert opened.body["number"] == 1
    settled = await control("POST", "settle")
    assert settled.body["done"] == 2
    assert (await app.facts(1))["mergeable"] == "MERGEABLE"
    await control("POST", "rules", {"repo": REPO, "required_checks": ["lint"]})
    assert (await app.facts(1))["mergeStateStatus"] == "BLOCKED"
    await control("POST", "seed", {"people": ["erin"]})
    role = {"as": "alice", "act": "role", "repo": REPO, "login": "erin", "role": "admin"}
    await control("POST", "acts", role)
    shown = await app.get(f"/repos/{REPO}/collaborators/erin/permission")
    assert shown["role_name"] == "admin"


async def test_the_clock_is_moved_and_tells_what_waits(sandbox, control):
    before = sandbox.world.now()
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    answer = await control("POST", "clock", {"advance_s": 90})
    assert (sandbox.world.now() - before).total_seconds() == 90
    assert answer.body["waiting"] == [f"mergeability of {REPO}#1"]
    assert (await control("POST", "clock", {"speed": 3})).status == 400


async def test_calls_moves_and_deliveries_can_be_read(sandbox, control, app, receiver):
    await app.get(f"/repos/{REPO}/branches/main")
    await sandbox.act("push", "bob", REPO, branch="w", files={"a.txt": "a"})
    await sandbox.settle()
    assert sandbox.world.calls[-1]["path"] == f"/api/v3/repos/{REPO}/branches/main"
    move = sandbox.world.reflog[-1]
    assert (move.ref, move.actor) == ("refs/heads/w", "bob")
    sent = (await control("GET", "deliveries")).body["deliveries"]
    assert [one["event"] for one in sent] == ["push", "check_suite"]


async def test_faults_are_added_listed_and_cleared(control):
    body = {"match": {"method": "GET"}, "fault": {"kind": "fail_before", "status": 500}}
    number = (await control("POST", "faults", body)).body["id"]
    assert len((await control("GET", "faults")).body["faults"]) == 1
    await control("DELETE", "faults", {"id": number})
    assert (await control("GET", "faults")).body == {"faults": []}


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("acts", {"act": "fly", "as": "bob", "repo": REPO}, "no act is called 'fly'"),
        ("acts", {"act": "close", "as": "zed", "repo": REPO}, "nobody is called 'zed'"),
        ("acts", {"act": "close", "as": "bob", "repo": "no/repo"}, "no repository"),
        ("acts", {"act": "close", "as": "bob", "repo": REPO, "number": 9}, "has no #9"),
        ("acts", {"act": "close", "as": "bob", "repo": REPO, "number": "x"}, "malformed"),
        ("seed", {"surprise": 1}, "seed knows no surprise"),
        ("seed", {"repositories": [{}]}, "malformed"),
        ("seed", {"repositories": [{"full_name": "flat"}]}, "not owner/name"),
        ("seed", {"knobs": {"wind": 1}}, "knobs are"),
        ("rules", {"repo": REPO, "settings": {"x": 1}}, "settings are"),
        ("clock", {"advance_s": "much"}, "malformed"),
        ("faults", {"fault": 1}, "a fault is"),
    ],
)
async def test_what_is_malformed_is_400_and_says_why(control, name, body, said):
    answer = await control("POST", name, body)
    assert answer.status == 400
    assert said in answer.body["error"]


async def test_a_body_that_is_no_object_is_400(control):
    assert (await control("POST", "acts", [1])).status == 400


async def test_who_may_not_write_may_not_push_by_an_act(control):
    act = {"act": "push", "as": "carol", "repo": REPO, "branch": "w", "files": {"a": "a"}}
    assert (await control("POST", "acts", act)).status == 403
    assert (await control("POST", "acts", {**act, "bypass": True})).status == 200


async def test_a_page_of_another_site_cannot_act(control, http, sandbox):
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await control("POST", "settle", {}, **headers)
        assert answer.status == 403
    assert (await control("POST", "settle", {}, Host="evil.example")).status == 403
    assert (await control("POST", "settle", {}, Origin=sandbox.url)).status == 200


async def test_the_settings_for_headgate_are_seven_lines(sandbox):
    lines = apps.environment_lines(sandbox)
    names = [line.partition("=")[0].removeprefix("HEADGATE_GITHUB_") for line in lines]
    app = ["APP_ID", "PRIVATE_KEY", "WEBHOOK_SECRET", "CLIENT_ID", "CLIENT_SECRET"]
    assert names == ["URL", "HOST", *app]
    assert sandbox.key_path.read_bytes().startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert sandbox.key_path.stat().st_mode & 0o077 == 0
    assert len(sandbox.webhook_secret) >= 32


async def test_an_old_git_is_refused(monkeypatch):
    monkeypatch.setattr(command, "VERSION_NEEDED", (99, 0))
    with pytest.raises(CannotRun, match="git"):
        async with running(SandboxOptions()):
            pass


async def test_a_port_in_use_is_an_os_error(sandbox):
    port = int(sandbox.url.rpartition(":")[2])
    with pytest.raises(OSError, match="address already in use"):
        async with running(SandboxOptions(port=port)):
            pass


async def test_an_enterprise_server_has_no_limits(http):
    async with running(SandboxOptions(is_manual=True, is_ghes=True)) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        answer = await Client(sandbox, http, None).call("GET", f"/repos/{REPO}")
        assert answer.status == 200
        assert "X-RateLimit-Limit" not in answer.headers


async def test_a_data_folder_holds_the_bare_repositories(tmp_path):
    async with running(SandboxOptions(is_manual=True, data=tmp_path / "data")) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        folder = sandbox.repository(REPO).git.folder
        assert folder.parent == tmp_path / "data"
    assert (folder / "HEAD").exists()
    with pytest.raises(CannotRun, match="give an empty folder"):
        async with running(SandboxOptions(data=tmp_path / "data")):
            pass
