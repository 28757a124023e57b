"""Tests belong to whom the repository's own file says (docs/design/reports.md 9)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.accounts.store import access
from service.parser_process import Limits
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode, Unavailable
from service.provider.trees import TreePaths
from service.testhealth.operations import code_owners, owning
from service.testhealth.reports import owners
from service.testhealth.store import code_owners as stored
from service.testhealth.store.cases import Place
from service.testhealth.store.code_owners import OwnersText
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, NOW, a_case, a_file

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WEB, SHOP = ("@octo/web",), ("@octo/shop",)
OWN = "CODEOWNERS"
LASTING = "* @octo/shop\n" + "".join(
    f"{'?' * (610 + one)}*{'?' * other} @octo/web\n" for one in range(100) for other in range(20)
)
"""Patterns that share no word with any path, so each of them is asked of every path."""


class Library(ValuesProvider):
    """A repository's files; `asked` are the reads, `trouble` is met by the next one."""

    def __init__(self):
        super().__init__(HOST)
        self.asked = []
        self.trouble = None
        self.is_cut = False
        self.meanwhile = None

    async def tip(self, repo, branch):
        self.asked.append(f"tip of {branch}")
        if self.trouble is not None:
            trouble, self.trouble = self.trouble, None
            raise trouble
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().tip(repo, branch)

    async def tree_paths(self, repo, commit):
        self.asked.append("tree")
        if self.is_cut:
            return TreePaths({}, complete=False)
        return await super().tree_paths(repo, commit)

    async def read_file(self, repo, path, commit, bytes_max):
        self.asked.append(path)
        found = await super().read_file(repo, path, commit, bytes_max)
        if found is not None and len(found) > bytes_max:
            raise Refused("too large", RefusedCode.TOO_LARGE)
        return found


class Shelf:
    """A repository whose tests have owners."""

    def __init__(self, stage, library):
        self.stage, self.library = stage, library

    async def swept(self, after=timedelta()):
        """What the provider is asked by a sweep so much later."""
        self.library.asked.clear()
        self.stage.clock.present += after
        await code_owners.look_after(self.stage.runtime)
        return self.library.asked

    async def owners(self):
        """Name of each known test → its owners."""
        return {name: case.owners for name, case in (await self.stage.cases()).items()}

    async def moved(self, *paths, branch="main"):
        """Commits arrive; without paths nobody knows what they touch."""
        touched = frozenset(paths) or None
        await code_owners.branch_moved(self.stage.runtime, self.stage.repository, branch, touched)


@pytest.fixture
async def shelf(store):
    made = await upload_stage.staged(store)
    library = Library()
    made.runtime = replace(made.runtime, providers={HOST: library})
    return Shelf(made, library)


def without_file(name, classname):
    return a_case(name, "P", file="", classname=classname)


async def send_cases(shelf, *cases, **meta):
    file = a_file({"x": "P"}, name=str(cases))
    sent = replace(file, cases=cases)
    await shelf.stage.send([sent], **meta)


async def test_tests_belong_to_whom_the_file_of_the_repository_says(shelf):
    shelf.library.files = {OWN: b"\xef\xbb\xbf* @octo/shop\n/tests/total.py @octo/web # \0\n"}
    await shelf.stage.ran({"total": "P", "add": "F"})
    assert await shelf.owners() == {"total": (), "add": ()}
    assert await shelf.swept() == ["tip of main", "tree", OWN]
    assert await shelf.owners() == {"total": WEB, "add": SHOP}


async def test_the_first_place_that_has_one_counts(shelf):
    shelf.library.files = {
        "docs/CODEOWNERS": b"* @nobody",
        OWN: b"* @nobody",
        ".github/CODEOWNERS": b"* @octo/web",
    }
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    assert await shelf.owners() == {"total": WEB}


async def test_what_uploads_send_counts_until_the_repositorys_own_was_read(shelf):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"}, codeowners="* @octo/web")
    assert await shelf.owners() == {"total": WEB}
    await shelf.swept()
    assert await shelf.owners() == {"total": SHOP}
    await shelf.stage.ran({"total": "P"}, codeowners="* @octo/web", ran_at=NOW + MINUTE)
    assert await shelf.owners() == {"total": SHOP}


async def test_where_the_repository_has_none_what_uploads_send_stays(shelf):
    await shelf.stage.ran({"total": "P"}, codeowners="* @octo/web")
    assert await shelf.swept() == ["tip of main", "tree"]
    assert await shelf.owners() == {"total": WEB}
    await shelf.stage.ran({"total": "P"}, codeowners="* @octo/shop", ran_at=NOW + MINUTE)
    assert await shelf.owners() == {"total": SHOP}


async def test_a_file_that_goes_takes_its_owners_along(shelf):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    shelf.library.files = {}
    await shelf.moved(OWN)
    await shelf.swept()
    assert await shelf.owners() == {"total": ()}
    await shelf.stage.ran({"total": "P"}, codeowners="* @octo/web", ran_at=NOW + MINUTE)
    assert await shelf.owners() == {"total": WEB}


async def test_new_tests_get_their_owners_without_a_question(shelf):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    assert await shelf.swept(HOUR) == []
    await shelf.stage.ran({"total": "P", "add": "P"}, ran_at=NOW - MINUTE)
    assert await shelf.swept(MINUTE) == []
    assert await shelf.owners() == {"total": SHOP, "add": SHOP}


async def test_more_tests_than_are_looked_at_together_all_get_theirs(shelf, monkeypatch):
    monkeypatch.setattr(code_owners, "CASES_AT_ONCE", 2)
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({f"test {n}": "P" for n in range(5)})
    await shelf.swept()
    assert set((await shelf.owners()).values()) == {SHOP}


async def test_a_file_that_has_not_changed_is_not_read_again(shelf):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    assert await shelf.swept(DAY - MINUTE) == []
    assert await shelf.swept(MINUTE) == ["tip of main", "tree"]
    shelf.library.files = {OWN: b"* @octo/web"}
    assert await shelf.swept(DAY) == ["tip of main", "tree", OWN]
    assert await shelf.owners() == {"total": WEB}


async def test_only_a_push_that_may_touch_it_has_it_read_anew(shelf):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.moved(OWN)
    assert await shelf.swept() == []
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    await shelf.moved("src/app.py", "src/CODEOWNERS")
    await shelf.moved(OWN, branch="release")
    assert await shelf.swept(MINUTE) == []
    for paths in (["src/app.py", "docs/CODEOWNERS"], []):
        await shelf.moved(*paths)
        assert await shelf.swept(MINUTE) == ["tip of main", "tree"]


async def test_a_push_while_the_file_is_read_is_heard(shelf):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"})

    async def push():
        shelf.library.meanwhile = None
        shelf.stage.clock.present += MINUTE
        await shelf.moved(OWN)

    shelf.library.meanwhile = push
    await shelf.swept()
    assert shelf.library.asked == ["tip of main", "tree", OWN, "tip of main", "tree"]


async def test_a_test_without_a_file_belongs_where_its_class_stands(shelf):
    shelf.library.files = {OWN: b"/src/ @octo/shop", "src/a/CartTest.java": b""}
    await send_cases(shelf, without_file("total", "a.CartTest"), without_file("add", "a.Other"))
    await shelf.swept()
    assert await shelf.owners() == {"total": SHOP, "add": ()}


async def test_a_new_test_without_a_file_has_the_files_listed_again_within_the_hour(shelf):
    shelf.library.files = {OWN: b"/src/ @octo/shop", "src/a/CartTest.java": b""}
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    await send_cases(shelf, without_file("add", "a.CartTest"), ran_at=NOW - MINUTE)
    assert await shelf.swept(10 * MINUTE) == []
    assert await shelf.swept(49 * MINUTE) == []
    assert await shelf.swept(MINUTE) == ["tip of main", "tree"]
    assert (await shelf.owners())["add"] == SHOP
    assert await shelf.swept(HOUR) == []


async def test_where_not_all_files_are_listed_classes_stand_nowhere(shelf):
    shelf.library.files = {"docs/CODEOWNERS": b"* @octo/shop", "src/a/CartTest.java": b""}
    shelf.library.is_cut = True
    await send_cases(shelf, without_file("total", "a.CartTest"), a_case("add", "P"))
    assert await shelf.swept() == ["tip of main", "tree", *owners.PLACES]
    assert await shelf.owners() == {"total": (), "add": SHOP}


async def test_a_file_that_is_too_large_gives_tests_to_nobody(shelf):
    shelf.library.files = {
        ".github/CODEOWNERS": b"* @octo/web\n" + b"#" * owners.BYTES_MAX,
        OWN: b"* @octo/shop",
    }
    await shelf.stage.ran({"total": "P"}, codeowners="* @octo/web")
    await shelf.swept()
    assert await shelf.owners() == {"total": ()}


@pytest.mark.parametrize(
    "trouble",
    [
        Unavailable("away", NOW),
        Gone("gone", GoneKind.REPOSITORY),
    ],
)
async def test_after_trouble_it_is_tried_again(shelf, trouble):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"})
    shelf.library.trouble = trouble
    assert await shelf.swept() == ["tip of main"]
    assert await shelf.swept(14 * MINUTE) == []
    assert await shelf.swept(MINUTE) == ["tip of main", "tree", OWN]
    assert await shelf.owners() == {"total": SHOP}


async def test_a_repository_out_of_reach_is_not_asked_of(shelf):
    await shelf.stage.ran({"total": "P"})
    here = shelf.stage.repository.id
    await shelf.stage.runtime.store.run(access.set_repository_available, here, False)
    assert await shelf.swept() == []
    await shelf.stage.runtime.store.run(access.set_repository_available, here, True)
    assert await shelf.swept(DAY) == ["tip of main", "tree"]


async def test_what_nobody_trusts_has_nothing_read(shelf):
    stranger = replace(shelf.stage.caller, token_id="")
    await shelf.stage.ran({"total": "P"}, caller=stranger)
    assert await shelf.swept() == []


async def test_owners_by_an_older_file_are_not_given_any_more(shelf):
    await shelf.stage.ran({"total": "P"})
    store, repository = shelf.stage.runtime.store, shelf.stage.repository
    place = Place(repository.org_id, repository.id)
    await store.run(stored.put, place.repository_id, OwnersText(OWN, "1", ""), NOW)
    assert await store.run(stored.assign_owners, place, NOW - MINUTE, {1: WEB}, 1) is False
    assert await shelf.owners() == {"total": ()}
    assert await store.run(stored.assign_owners, place, NOW, {1: WEB}, 1) is True
    assert await shelf.owners() == {"total": WEB}


async def test_a_file_that_takes_too_long_owns_nothing_and_is_not_read_again(shelf, monkeypatch):
    shelf.library.files = {OWN: b"* @octo/shop"}
    await shelf.stage.ran({"total": "P"})
    await shelf.swept()
    assert await shelf.owners() == {"total": SHOP}
    monkeypatch.setattr(owning, "LIMITS", Limits(computing_s=1, memory_bytes=1 << 29))
    shelf.library.files = {OWN: LASTING.encode()}
    await shelf.moved(OWN)
    await shelf.stage.ran({f"{number:0600}": "P" for number in range(100)}, ran_at=NOW + MINUTE)
    await shelf.swept()
    assert set((await shelf.owners()).values()) == {()}
    await shelf.stage.ran({"one more": "P"}, ran_at=NOW + 2 * MINUTE)
    await shelf.swept()
    assert set((await shelf.owners()).values()) == {()}


async def test_an_upload_whose_file_takes_too_long_says_so_and_counts(shelf, monkeypatch):
    monkeypatch.setattr(owning, "LIMITS", Limits(computing_s=1, memory_bytes=1 << 29))
    tests = {f"{number:0600}": "P" for number in range(100)}
    answer = await shelf.stage.ran(tests, codeowners=LASTING)
    assert answer.warnings == (
        "codeowners_not_read: Reading CODEOWNERS took more than 1 s; tests keep their owners.",
    )
    assert len(await shelf.owners()) == 100


@pytest.mark.parametrize("few", [0, owning.QUESTIONS_FEW])
async def test_a_process_finds_the_owners_that_a_thread_finds(shelf, monkeypatch, few):
    monkeypatch.setattr(owning, "QUESTIONS_FEW", few)
    text = "* @octo/shop\n" + "".join(f"/tests/{n}.py @octo/web\n" for n in range(0, 100_000, 2))
    runtime, repo = shelf.stage.runtime, shelf.stage.repository.ref
    found = await owning.owners_of(runtime, repo, text, ["tests/1.py", "tests/2.py"])
    assert found == {"tests/1.py": SHOP, "tests/2.py": WEB}
