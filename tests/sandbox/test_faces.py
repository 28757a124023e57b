"""Row Faces: where GitHub has been seen to behave in two ways, and the orders of its deliveries."""

from dataclasses import fields, replace

import pytest

from bot.sandbox import faces
from bot.sandbox.faces import PLAIN, RECORDED, Face
from tests.sandbox.client import REPO

RUNS = f"/repos/{REPO}/check-runs"
SEEDS = range(40)
DONE = {"status": "completed", "conclusion": "success"}


async def opened(sandbox, **more):
    return await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, **more)


@pytest.mark.parametrize("face", [PLAIN, RECORDED])
async def test_a_comment_of_the_app_names_it_or_not(sandbox, app, receiver, face):
    sandbox.world.face = face
    pull = await opened(sandbox)
    path = f"/repos/{REPO}/issues/{pull['number']}/comments"
    made = await app.call("POST", path, {"body": "hello"})
    await sandbox.settle()
    sent = receiver.payloads("issue_comment")[0]["comment"]
    for comment in (made.body, *await app.get(path), sent):
        shown = comment["performed_via_github_app"]
        assert (shown is None) is face.hides_app
        assert comment["user"]["login"] == "headgate[bot]"


@pytest.mark.parametrize(("face", "sender"), [(PLAIN, "headgate[bot]"), (RECORDED, "bob")])
async def test_the_sender_of_a_check_event_is_the_app_or_the_author(
    sandbox, app, receiver, face, sender
):
    sandbox.world.face = face
    pull = await opened(sandbox)
    await app.call("POST", RUNS, {"name": "x", "head_sha": pull["head"], **DONE})
    await sandbox.settle()
    for event in ("check_run", "check_suite"):
        ours = [one for one in receiver.payloads(event) if one["action"] == "completed"]
        own = next(one for one in ours if one[event]["app"]["slug"] == "headgate")
        assert own["sender"]["login"] == sender


async def test_a_button_is_pressed_by_the_person_in_both_faces(sandbox, app, receiver):
    sandbox.world.face = RECORDED
    pull = await opened(sandbox)
    button = {"label": "Retry", "description": "Again", "identifier": "retry"}
    body = {"name": "x", "head_sha": pull["head"], "actions": [button], **DONE}
    await app.call("POST", RUNS, body)
    await sandbox.act("press_button", "alice", REPO, number=pull["number"], button="retry")
    await sandbox.settle()
    sent = receiver.payloads("check_run")
    senders = [one["sender"]["login"] for one in sent if one["action"] == "requested_action"]
    assert senders == ["alice"]


@pytest.mark.parametrize(("face", "state"), [(PLAIN, "DRAFT"), (RECORDED, "UNSTABLE")])
async def test_a_draft_has_a_merge_state_of_its_own_or_not(sandbox, app, face, state):
    sandbox.world.face = face
    pull = await opened(sandbox, draft=True)
    body = {"name": "x", "head_sha": pull["head"], "conclusion": "failure"}
    await app.call("POST", RUNS, body)
    await sandbox.settle()
    assert (await app.facts(pull["number"]))["mergeStateStatus"] == state


@pytest.mark.parametrize(
    ("face", "shown"),
    [
        (PLAIN, [("opened", None, "unknown"), ("closed", True, "unknown")]),
        (RECORDED, [("opened", True, "unstable"), ("closed", True, "clean")]),
    ],
)
async def test_events_show_mergeability_or_not_yet(sandbox, receiver, face, shown):
    sandbox.world.face = face
    pull = await opened(sandbox)
    await sandbox.settle()
    await sandbox.act("close", "bob", REPO, number=pull["number"])
    await sandbox.settle()
    sent = receiver.payloads("pull_request")
    found = [(one["action"], one["pull_request"]) for one in sent]
    assert [(word, one["mergeable"], one["mergeable_state"]) for word, one in found] == shown


async def test_mergeability_that_takes_longer_is_shown_early_by_no_face(sandbox, receiver):
    sandbox.world.face = RECORDED
    await sandbox.seed(knobs={"mergeable_delay_s": 60})
    await opened(sandbox)
    await sandbox.settle()
    assert receiver.payloads("pull_request")[0]["pull_request"]["mergeable"] is None


@pytest.mark.parametrize(("conclusion", "times"), [("failure", 2), ("success", 1)])
async def test_a_completed_run_completes_again_with_another_conclusion_only(
    sandbox, app, receiver, conclusion, times
):
    pull = await opened(sandbox)
    made = await app.call("POST", RUNS, {"name": "x", "head_sha": pull["head"], **DONE})
    change = {"status": "completed", "conclusion": conclusion}
    await app.call("PATCH", f"{RUNS}/{made.body['id']}", change)
    await sandbox.settle()
    sent = [one for one in receiver.payloads("check_run") if one["action"] == "completed"]
    ours = [one["check_run"] for one in sent if one["check_run"]["name"] == "x"]
    assert [one["conclusion"] for one in ours] == ["success", conclusion][:times]
    assert {one["id"] for one in ours} == {made.body["id"]}


async def test_a_head_is_merged_by_the_ref_of_its_pull_request(sandbox, app):
    pull = await opened(sandbox)
    tip = sandbox.repository(REPO).git.branch("main")
    await app.call("POST", f"/repos/{REPO}/git/refs", {"ref": "refs/heads/temp", "sha": tip})
    head = f"refs/pull/{pull['number']}/head"
    made = await app.call("POST", f"/repos/{REPO}/merges", {"base": "temp", "head": head})
    assert made.status == 201
    assert pull["head"] in [one["sha"] for one in made.body["parents"]]


async def test_a_new_branch_without_a_new_commit_names_the_other_one(sandbox, app, receiver):
    tip = sandbox.repository(REPO).git.branch("main")
    await app.call("POST", f"/repos/{REPO}/git/refs", {"ref": "refs/heads/temp", "sha": tip})
    await opened(sandbox)
    await sandbox.settle()
    first, second = receiver.payloads("push")
    assert (first["base_ref"], second["base_ref"]) == ("refs/heads/main", None)


async def test_a_pushed_commit_lists_its_first_3000_files(sandbox, receiver):
    files = {f"{number}.txt": "x" for number in range(3001)}
    await sandbox.act("push", "bob", REPO, branch="large", files=files)
    await sandbox.settle()
    assert len(receiver.payloads("push")[0]["commits"][0]["added"]) == 3000


def test_a_face_is_drawn_by_its_seed():
    drawn = [faces.drawn(f"seed {number}") for number in SEEDS]
    assert drawn == [faces.drawn(f"seed {number}") for number in SEEDS]
    for way in fields(Face):
        values = {getattr(one, way.name) for one in drawn}
        assert way.name == "jitter_s" or len(values) > 1, way.name


async def story(sandbox, app, seed):
    """A run that is complete from its beginning, a merge, and a deleted branch."""
    sandbox.world.face = replace(PLAIN, jitter_s=faces.JITTER_S)
    sandbox.world.orders.seed(seed)
    pull = await sandbox.act("open", "bob", REPO, files={f"{seed}.txt": "x"}, head=f"topic-{seed}")
    await sandbox.settle()
    await app.call("POST", RUNS, {"name": "x", "head_sha": pull["head"], **DONE})
    await sandbox.act("merge", "alice", REPO, number=pull["number"])
    await sandbox.act("delete_branch", "bob", REPO, branch=f"topic-{seed}")
    await sandbox.settle()


PAIRS = [
    (("check_run.completed", b'"name":"x"'), ("check_run.created", b'"name":"x"')),
    (("push", b'"ref":"refs/heads/main"'), ("pull_request.closed", b"")),
    (("pull_request.closed", b""), ("push", b'"deleted":true')),
]


def order_of(receiver):
    """Whether the first of each pair of deliveries came before the second."""
    sent = list(zip(receiver.events(), (body for _, body in receiver.received), strict=True))

    def place(event, part):
        return next(at for at, (name, body) in enumerate(sent) if name == event and part in body)

    return [place(*one) < place(*other) for one, other in PAIRS]


async def test_deliveries_of_one_act_overtake_each_other_in_every_order(sandbox, app, receiver):
    seen = []
    for seed in range(12):
        receiver.received.clear()
        await story(sandbox, app, seed)
        seen.append(order_of(receiver))
    assert all(len(set(orders)) == 2 for orders in zip(*seen, strict=True))
