"""Signed evidence: every form of a landing is proved on a fresh clone, by git alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot import envelopes
from bot.keys import KeyRing
from service.accounts import signing_keys, tokens
from service.accounts.store import access
from service.accounts.tokens import TokenRequest
from service.database.paging import PageSelection
from service.errors import NotFound
from service.mergequeue.landing_records import StoredLanding
from service.mergequeue.operations import landing_evidence as operations
from service.mergequeue.store import queues
from service.vocabulary import SYSTEM, Role
from tests.end_to_end.test_batches import batch_of
from tests.end_to_end.test_chains import a_chain
from tests.end_to_end.test_stacks import a_stack
from tests.harness.asking import HOST, Asker, asker
from tests.harness.signed_landings import files_of
from tests.harness.world import REPO, World, WorldOptions

METHODS = ("MERGE_COMMIT", "SQUASH", "REBASE")
BY_GIT = {"settings": {"build_method": "git"}}


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """As usual, unless the story says otherwise."""
    return WorldOptions(**getattr(request, "param", {}))


async def everything_proved(world: World, folder: Path, numbers: list[int]) -> None:
    """All of it landed, each with evidence, and the whole range is proved."""
    assert set(await world.merged()) >= set(numbers)
    files = await files_of(world, folder)
    assert len(files.lines()) == len(numbers)
    assert files.verify(f"{world.start}..main") == 0


@pytest.mark.parametrize("method", METHODS)
async def test_single_landings_are_proved(world: World, tmp_path: Path, method: str) -> None:
    await world.make_queue(merge_method=method)
    numbers = [await world.open(), await world.open(fresh=True), await world.open()]
    for number in numbers:
        await world.settle()
        await world.comment("/merge", on=number)
    await world.settle()
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("method", METHODS)
async def test_a_batch_is_proved_member_by_member(
    world: World, tmp_path: Path, method: str
) -> None:
    numbers = await batch_of(world, 3, merge_method=method)
    await world.settle()
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("method", METHODS)
async def test_a_chain_is_proved_member_by_member(
    world: World, tmp_path: Path, method: str
) -> None:
    await world.make_queue(merge_method=method)
    numbers = await a_chain(world, {"one.txt": "1\n"}, {"two.txt": "2\n"}, {"three.txt": "3\n"})
    await world.comment("/merge", on=numbers[-1])
    await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED"] * 3
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("method", METHODS)
async def test_a_native_stack_is_proved_member_by_member(
    world: World, tmp_path: Path, method: str
) -> None:
    await world.make_queue(merge_method=method)
    numbers = await a_stack(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    await world.comment("/merge", on=numbers[-1])
    await world.settle()
    await everything_proved(world, tmp_path, numbers)


@pytest.mark.parametrize("world_options", [BY_GIT], indirect=True)
@pytest.mark.parametrize("method", ["SQUASH", "REBASE"])
async def test_tested_commits_that_become_the_branch_are_proved(
    world: World, tmp_path: Path, method: str
) -> None:
    numbers = await batch_of(world, 3, merge_method=method, land_tested_commits=True)
    await world.settle()
    files = await files_of(world, tmp_path)
    assert len(files.lines()) == len(numbers)
    assert files.verify(f"{world.start}..main") == 0


async def landed(world: World) -> int:
    """One pull request that has just landed."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"
    return number


def predicate_of(line: str) -> Any:
    """What an envelope states about its commit."""
    return json.loads(envelopes.payload_of(line))["predicate"]


async def test_a_push_by_hand_between_two_landings_is_named(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await world.make_queue()
    await landed(world)
    pushed = {"branch": "main", "files": {"by-hand.txt": "x\n"}, "bypass": True}
    await world.act("push", by="alice", **pushed)
    by_hand = world.repository.git.branch("main")
    await world.settle()
    await landed(world)
    files = await files_of(world, tmp_path)
    assert files.verify(f"{world.start}..main") == 2
    assert f"Without evidence: {by_hand}\n" in capsys.readouterr().out


async def test_what_an_older_key_signed_is_proved_after_a_rotation(
    world: World, tmp_path: Path
) -> None:
    await world.make_queue()
    await landed(world)
    (old,) = await signing_keys.all_keys(world.runtime)
    new = await signing_keys.rotate(world.runtime, SYSTEM)
    await landed(world)
    files = await files_of(world, tmp_path)
    assert [envelopes.key_id_of(line) for line in files.lines()] == [old.id, new.id]
    assert files.verify(f"{world.start}..main") == 0
    served = json.loads(files.keys.read_text())["keys"]
    assert [each["keyid"] for each in served] == [old.id, new.id]
    assert served[0]["validUntil"] == served[1]["validFrom"]


OTHER = KeyRing("another secret key, also long enough to be one")


async def test_an_instance_with_another_secret_key_replaces_no_key_and_loses_no_evidence(
    world: World, tmp_path: Path
) -> None:
    other = replace(world.runtime, keys=OTHER)
    key = await signing_keys.rotate(other, SYSTEM)
    await world.make_queue()
    number = await landed(world)
    await operations.sign_waiting(world.runtime)
    assert await world.merged() == [number]
    known = await signing_keys.all_keys(world.runtime)
    assert [each.id for each in known if each.until is None] == [key.id]
    assert await signed_of(world) == []
    with pytest.raises(NotFound, match="HEADGATE_SECRET_KEY of the others"):
        await of_tip(world)
    await operations.sign_waiting(other)
    assert len(await of_tip(world)) == 1
    files = await files_of(world, tmp_path)
    assert [envelopes.key_id_of(line) for line in files.lines()] == [key.id]
    assert files.verify(f"{world.start}..main") == 0


async def signed_of(world: World) -> list[str]:
    """The envelopes that the list of the queue has."""
    (queue,) = await world.runtime.store.read(queues.all_queues)
    listed = await operations.page(world.runtime, queue, PageSelection(100))
    return [each.envelope for each in listed.rows]


async def of_tip(world: World) -> tuple[StoredLanding, ...]:
    """The evidence of the tip of `main`."""
    (queue,) = await world.runtime.store.read(queues.all_queues)
    record = await world.runtime.store.read(access.repository, queue.repository_id)
    return await operations.of_repository(
        world.runtime, record, str(world.repository.git.branch("main"))
    )


async def test_a_list_of_evidence_ends_before_what_waits_to_be_signed(world: World) -> None:
    await world.make_queue()
    await landed(world)
    await signing_keys.rotate(replace(world.runtime, keys=OTHER), SYSTEM)
    await landed(world)
    new = await signing_keys.rotate(world.runtime, SYSTEM)
    await landed(world)
    assert len(await signed_of(world)) == 1
    await operations.sign_waiting(world.runtime)
    envelopes_now = await signed_of(world)
    assert [envelopes.key_id_of(line) for line in envelopes_now[1:]] == [new.id, new.id]


async def test_what_a_later_key_signs_is_proved_and_says_that_it_waited(
    world: World, tmp_path: Path
) -> None:
    await signing_keys.rotate(replace(world.runtime, keys=OTHER), SYSTEM)
    await world.make_queue()
    await landed(world)
    await world.rest(3600)
    new = await signing_keys.rotate(world.runtime, SYSTEM)
    await operations.sign_waiting(world.runtime)
    files = await files_of(world, tmp_path)
    (line,) = files.lines()
    assert envelopes.key_id_of(line) == new.id
    assert files.verify(f"{world.start}..main") == 0
    stated = predicate_of(line)
    assert stated["recorded"]["at"] < stated["signed"]["at"]
    assert "Its signature was made after the landing: it waited for a key." in stated["weaknesses"]


async def test_the_evidence_names_who_asked_what_was_tested_and_its_weak_places(
    world: World, tmp_path: Path
) -> None:
    await world.make_queue(merge_method="SQUASH", concurrency=3)
    number = await landed(world)
    (line,) = (await files_of(world, tmp_path)).lines()
    stated = predicate_of(line)
    (member,) = stated["members"]
    asked = member["consent"]["submittedBy"]
    assert (member["number"], member["isSubject"], asked["login"]) == (number, True, "bob")
    assert asked["channel"] == "comment"
    assert member["approvals"] == []
    assert [(each["name"], each["outcome"]) for each in stated["checks"]] == [("unit", "passed")]
    assert stated["checks"][0]["commit"] == stated["run"]["commit"]
    assert stated["run"]["tree"] == stated["landing"]["testedTree"]
    assert stated["settings"]["changed"]["concurrency"] == 3
    assert stated["weaknesses"] == ["Nobody with write access has approved it."]
    assert stated["recorded"]["clock"] == "headgate"


@pytest.mark.parametrize("is_of_head", [True, False])
async def test_the_evidence_names_who_approved_which_head_and_when(
    world: World, tmp_path: Path, is_of_head: bool
) -> None:
    await world.make_queue(merge_method="SQUASH")
    number = await world.open()
    pull = world.repository.issues[number].pull
    assert pull is not None
    approved = pull.head_sha
    await world.act("approve", by="alice", number=number)
    if not is_of_head:
        await world.act("push", by="bob", number=number, files={"later.txt": "x\n"})
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    (line,) = (await files_of(world, tmp_path)).lines()
    stated = predicate_of(line)
    (member,) = stated["members"]
    (approval,) = member["approvals"]
    assert (approval["login"], approval["head"]) == ("alice", {"gitCommit": approved})
    assert approval["submitted"]["clock"] == "provider"
    assert (approval["head"] == member["head"]) is is_of_head
    other = "Every approval is of another head than the one that landed."
    assert stated["weaknesses"] == ([] if is_of_head else [other])


async def test_settings_that_ask_less_than_the_landed_tree_are_weaknesses(
    world: World, tmp_path: Path
) -> None:
    await world.make_queue(head_only_statuses=("title",), status_reporters=("unit=any",))
    await landed(world)
    (line,) = (await files_of(world, tmp_path)).lines()
    told = predicate_of(line)["weaknesses"]
    assert 'Check "title" is asked of the own heads alone, by the setting headOnlyStatuses.' in told
    assert 'Check "unit" counts whoever reports it, by the setting statusReporters.' in told


async def test_evidence_is_exported_by_command_page_and_api(world: World, tmp_path: Path) -> None:
    await world.make_queue()
    await landed(world)
    files = await files_of(world, tmp_path)
    line = files.lines()[0]
    ask = await asker(world)
    assert await ask.headgate("evidence", "export", "--branch", "main") == f"{line}\n"
    commit = str(world.repository.git.branch("main"))
    shown = await ask.headgate("evidence", "show", commit, "--branch", "main")
    assert shown == f"{line}\n"
    status, body = await fetched(ask, commit)
    assert (status, [each["envelope"] for each in body["evidence"]]) == (200, [line])
    url = f"{world.url}/.well-known/headgate-keys.json"
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        assert reply.headers["Cache-Control"] == "public, max-age=300"
        assert json.loads(await reply.text()) == json.loads(files.keys.read_text())


async def test_evidence_of_others_and_of_other_commits_is_not_found(world: World) -> None:
    await world.make_queue()
    await landed(world)
    ask = await asker(world)
    commit = str(world.repository.git.branch("main"))
    status, body = await fetched(ask, world.start)
    assert (status, body["code"]) == (404, "evidence_not_found")
    stranger = Asker(world, (await tokens_of("strangers", world)))
    status, body = await fetched(stranger, commit)
    assert (status, body["code"]) == (404, "repository_not_found")
    status, body = await stranger.post("listLandingEvidence")
    assert (status, body["code"]) == (404, "repository_not_found")


async def tokens_of(org: str, world: World) -> str:
    """An admin token of another organization."""
    wish = TokenRequest(HOST, org, "story", Role.ADMIN)
    return (await tokens.create_token(world.runtime, wish, SYSTEM)).secret


async def fetched(ask: Asker, commit: str) -> tuple[int, Any]:
    """The answer of `/getLandingEvidence`."""
    owner, name = REPO.split("/")
    query = {"host": HOST, "owner": owner, "name": name, "commit": commit}
    headers = {"x-api-token": ask.secret}
    url = f"{ask.world.url}/v1/getLandingEvidence"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=query, headers=headers) as reply,
    ):
        return reply.status, await reply.json(content_type=None)
