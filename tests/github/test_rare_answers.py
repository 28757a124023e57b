"""Answers of GitHub that seldom come: words it may add, and errors inside a good answer.

The rules are in docs/design/provider.md 5 and 10.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.github import comments, people, pull_requests, refs, translate
from bot.github.comments import LabelReader
from bot.github.graphql import Facts
from bot.github.translate import OwnApp
from service.provider.errors import Gone, NotPermitted, Unavailable
from service.provider.signals import Asked, Where
from service.provider.values import AccessLevel
from service.vocabulary import Actor, ActorKind, Blocker, BlockerCode, RepoId, Sha
from tests.github.table import APP_ID, REPO, on_table
from tests.github.test_land_stops import facts as a_pull
from tests.provider.stage import HOST, START

ALICE = Actor(ActorKind.PERSON, "alice", "7")
FACTS = Facts(
    pull=a_pull(),
    base=None,
    merge_state="CLEAN",
    review_decision="",
    files=(),
    files_complete=True,
    has_open_thread=False,
    contexts=(),
    repository_node="R_1",
)


@pytest.mark.parametrize(
    "word", ["BEHIND", "BLOCKED", "UNSTABLE", "HAS_HOOKS", "CLEAN", "UNKNOWN", "BRAND_NEW"]
)
def test_a_summary_of_github_is_no_blocker_by_itself(word: str) -> None:
    assert pull_requests.blockers_of(replace(FACTS, merge_state=word), APP_ID) == ()


def test_a_dirty_one_conflicts_although_its_mergeability_is_not_known_yet() -> None:
    found = pull_requests.blockers_of(replace(FACTS, merge_state="DIRTY"), APP_ID)
    assert found == (Blocker(BlockerCode.CONFLICT),)


@pytest.mark.parametrize(
    ("role", "permission", "level"),
    [
        ("maintain", "write", AccessLevel.MAINTAIN),
        ("deployer", "write", AccessLevel.WRITE),
        ("deployer", "brand_new", AccessLevel.NONE),
        ("", "admin", AccessLevel.ADMIN),
    ],
)
async def test_a_custom_role_has_the_rights_of_the_role_it_is_based_on(
    role: str, permission: str, level: AccessLevel
) -> None:
    async with on_table() as (table, client):
        shown = {"role_name": role, "permission": permission, "user": {"id": 7}}
        table.says("GET /collaborators/alice/permission", shown)
        assert await people.access(client, ALICE) is level


async def test_rights_that_github_does_not_show_are_none() -> None:
    async with on_table() as (table, client):
        table.denies("GET /collaborators/alice/permission", 403, "Must have push access")
        table.says("GET /user/7", {"login": "alice"})
        assert await people.access(client, ALICE) is AccessLevel.NONE


async def test_a_token_that_is_refused_says_nothing_of_somebodys_rights() -> None:
    async with on_table() as (table, client):
        table.denies("GET /collaborators/alice/permission", 401, "Bad credentials")
        with pytest.raises(NotPermitted):
            await people.access(client, ALICE)


@pytest.mark.parametrize(
    ("kind", "is_there", "error"),
    [
        ("FORBIDDEN", True, NotPermitted),
        ("BRAND_NEW", True, Unavailable),
        ("NOT_FOUND", True, Unavailable),
        ("NOT_FOUND", False, Gone),
    ],
)
async def test_an_error_inside_an_answer_of_graphql_is_an_error(
    kind: str, is_there: bool, error: type[Exception]
) -> None:
    async with on_table() as (table, client):
        if not is_there:
            table.denies("GET ", 404, "Not Found")
        trouble = {"type": kind, "message": "No.", "path": ["repository"]}
        table.says("graphql CommitHistory", {"data": {"repository": None}, "errors": [trouble]})
        with pytest.raises(error):
            await refs.count_history(client, Sha("a" * 40))


def a_review(number: int, **author: object) -> dict[str, object]:
    return {
        "databaseId": number,
        "body": "/merge",
        "submittedAt": START.isoformat(),
        "lastEditedAt": None,
        "author": author,
    }


@pytest.mark.parametrize("kind", ["Mannequin", "Organization"])
async def test_a_review_of_an_account_that_cannot_command_hides_no_other(kind: str) -> None:
    """An import writes in the name of mannequins, and a person may have become an organization."""
    reviews = [
        a_review(1, __typename=kind, login="eve"),
        a_review(2, __typename="User", login="alice", databaseId=7),
    ]
    repository = {
        "id": "R_1",
        "pr_3": {"reviews": {"nodes": reviews}, "timelineItems": {"nodes": []}},
    }
    changed_at = (START + timedelta(minutes=1)).isoformat()
    pull = {"number": 3, "updated_at": changed_at, "head": {"ref": "a", "sha": "a" * 40}}
    async with on_table() as (table, client):
        table.says("GET /pulls", [{**pull, "base": {"ref": "main"}}])
        table.says("graphql Activity", {"data": {"repository": repository}})
        where, own = Where(RepoId(HOST, "1"), REPO), OwnApp(APP_ID, "headgate")
        reader = LabelReader(own, ())
        read = await comments.reviews_and_labels_since(client, where, START, reader)
    found = [
        signal
        for delivery in read.deliveries
        for signal in translate.signals_of(delivery, own)
        if isinstance(signal, Asked)
    ]
    assert [(each.source_id, each.actor.login) for each in found] == [("2", "alice")]


async def test_a_deleted_label_hides_no_other() -> None:
    """GitHub shows no label in the changes of one that was deleted."""
    alice = {"__typename": "User", "login": "alice", "databaseId": 7}

    def a_change(kind: str, number: int, label: object) -> dict[str, object]:
        fields = {"id": f"E{number}", "createdAt": START.isoformat(), "actor": alice}
        return {"__typename": kind, "label": label, **fields}

    nodes = [
        a_change("LabeledEvent", 1, {"name": "Ship"}),
        a_change("UnlabeledEvent", 2, None),
        a_change("UnlabeledEvent", 3, {"name": "bug"}),
    ]
    pull = {"timelineItems": {"nodes": nodes}}
    async with on_table() as (table, client):
        data = {"data": {"repository": {"id": "R_1", "pullRequest": pull}}}
        table.says("graphql LabelChanges", data, data)
        own = OwnApp(APP_ID, "headgate")
        change = await comments.label_change(client, 3, "ship", own)
        assert await comments.label_change(client, 3, "other", own) is None
    assert change is not None
    assert (change.id, change.added, change.actor.login) == ("E1", True, "alice")
