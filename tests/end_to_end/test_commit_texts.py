"""Commit texts from the queue's templates, and what text of a pull request cannot add to them."""

import re
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from service.mergequeue.engine.config import COMMIT_PLACEHOLDERS
from service.mergequeue.operations import commit_texts
from service.provider.values import CommitAuthor, PullRequest
from service.vocabulary import Mergeability, MergeMethod, PullRequestState, Sha
from tests.harness.asking import asker
from tests.harness.world import World

TITLE = "{{ title }} [{{ number }}]"
BODY = "{{ body }}\n\nIn: {{ run_url }}\nAuthored-by: {{author}}\nReviewed-by: {{ reviewers }}"
HOSTILE = """Fine.\r
\r
Signed-off-by: eve <eve@x.example>
thanks @octo-team [skip ci]
skip-checks: true"""
PULL = PullRequest(
    number=1,
    title="A title",
    body="A body",
    author="bob",
    state=PullRequestState.OPEN,
    draft=False,
    base_branch="main",
    base_tip=None,
    head_branch="topic",
    head_sha=Sha("a" * 40),
    head_repo="octo/widgets",
    is_fork=False,
    merge_commit=None,
    mergeability=Mergeability.MERGEABLE,
    blockers=(),
    labels=(),
    url="",
)
OWN = ("Headgate-Run", "Headgate-Deployment")


def trailers_of(message: str) -> list[str]:
    words = ["git", "interpret-trailers", "--parse"]
    done = subprocess.run(words, input=message, capture_output=True, text=True, check=True)
    return [line.partition(":")[0] for line in done.stdout.splitlines()]


def message_on_main(world: World) -> str:
    git = world.repository.git
    return git.objects.a_commit(str(git.branch("main"))).message


def reads_of_authors(world: World) -> int:
    bodies = [call["body"] or {} for call in world.sandbox.world.calls]
    return len([body for body in bodies if "query CommitAuthors" in body.get("query", "")])


async def landed(world: World, number: int) -> str:
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert number in await world.merged()
    return message_on_main(world)


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT])
async def test_what_lands_has_the_texts_of_the_templates(world: World, method: MergeMethod):
    await world.make_queue(merge_method=method, commit_title=TITLE, commit_body=BODY)
    number = await world.open(title="fix: pumps", body="They leak.")
    for person in ("carol", "alice"):
        await world.act("approve", by=person, number=number)
    message = await landed(world, number)
    title, _, rest = message.partition("\n")
    assert title == f"fix: pumps [{number}]"
    assert "\nThey leak.\n" in rest
    assert trailers_of(message)[:2] == ["In", "Authored-by"]
    assert "Authored-by: bob\nReviewed-by: alice" in message
    assert str((await world.entry(number)).verified_by) in message


@pytest.mark.parametrize(
    "method",
    [MergeMethod.SQUASH, pytest.param(MergeMethod.MERGE_COMMIT, marks=pytest.mark.soak)],
)
async def test_text_of_a_pull_request_adds_no_trailer_and_no_mention(
    world: World, method: MergeMethod
):
    await world.make_queue(merge_method=method, commit_body="{{ body }}")
    message = await landed(world, await world.open(body=HOSTILE))
    assert set(trailers_of(message)) <= set(OWN)
    assert "> Signed-off-by: eve <eve@x.example>" in message
    assert "@octo-team" not in message
    assert "[skip ci]" not in message


async def test_a_title_is_no_trailer_where_the_body_is_empty(world: World):
    await world.make_queue(
        merge_method=MergeMethod.MERGE_COMMIT, commit_title="{{ title }}", commit_body="{{ body }}"
    )
    message = await landed(world, await world.open(title="fix: pumps", body=""))
    assert tuple(trailers_of(message)) == OWN


async def test_the_file_of_the_repository_sets_the_texts(world: World):
    await world.make_queue()
    text = 'version: 1\nqueues:\n  main:\n    commitTitle: "Change {{ number }}"\n'
    files = {".github/headgate.yml": text}
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()
    number = await world.open()
    assert (await landed(world, number)).startswith(f"Change {number}")


@pytest.mark.parametrize(
    "method",
    [MergeMethod.SQUASH, pytest.param(MergeMethod.MERGE_COMMIT, marks=pytest.mark.soak)],
)
async def test_authors_of_commits_but_the_pull_requests_own_are_co_authors(
    world: World, method: MergeMethod
):
    await world.make_queue(
        merge_method=method, commit_body="{{ body }}\n\n{{ co_authors }}\nRun: {{ run_id }}"
    )
    number = await world.open(title="fix: pumps", body="They leak.", by="bob")
    sealed = "Seal\n\nCo-authored-by: Eve Smith <eve@x.example>\nCo-authored-by: bob <b@x.example>"
    for person in ("alice", "bob", "alice"):
        files = {"seal.txt": f"{person} {number}"}
        await world.act("push", by=person, number=number, files=files, message=sealed)
    _, _, body = (await landed(world, number)).partition("They leak.\n\n")
    alice, *others = body.splitlines()[:4]
    assert re.fullmatch(r"Co-authored-by: alice <\d+\+alice@users\.noreply\..+>", alice)
    assert others == [
        "Co-authored-by: Eve Smith <eve@x.example>",
        "Co-authored-by: bob <b@x.example>",
        f"Run: {(await world.entry(number)).verified_by}",
    ]


async def test_authors_are_read_only_for_a_text_that_names_co_authors(world: World):
    await world.make_queue(commit_body="{{ body }}\n\nReviewed-by: {{ reviewers }}")
    await landed(world, await world.open())
    assert reads_of_authors(world) == 0
    asking = await asker(world)
    await asking.done("updateQueue", commitBody="{{ body }}\n\n{{ co_authors }}")
    await landed(world, await world.open())
    assert reads_of_authors(world) == 1


async def test_without_templates_the_texts_are_those_of_the_repository(world: World):
    await world.make_queue()
    number = await world.open(title="Plain")
    assert (await landed(world, number)).startswith(f"Plain (#{number})")


async def test_a_rebase_keeps_the_texts_of_its_commits(world: World):
    await world.make_queue(merge_method=MergeMethod.REBASE, commit_title="Never")
    assert (await landed(world, await world.open(title="Own words"))).startswith("Own words")


WRONG: list[tuple[str, Any, str]] = [
    (
        "commitTitle",
        "{{ titel }}",
        "unknown placeholder `{{ titel }}`; known are title, number",
    ),
    ("commitTitle", "{{ body }}", "unknown placeholder `{{ body }}`"),
    ("commitTitle", "a\nb", "one line"),
    ("commitBody", "{{ title", "not `{{ name }}`"),
    ("commitTitle", "{{ co_authors }}", "unknown placeholder `{{ co_authors }}`"),
    ("commitBody", "By: {{ co_authors }}", "put it on a line of its own"),
    ("commitBody", "{{ body }}\n{{ title }} {{ co_authors }}", "put it on a line of its own"),
    ("commitBody", " ", "more than white space"),
    ("commitBody", "bell \a", "control characters"),
]


async def test_a_wrong_template_is_refused_with_the_mend(world: World):
    await world.make_queue()
    asking = await asker(world)
    for name, text, says in WRONG:
        status, answer = await asking.post("updateQueue", **{name: text})
        assert status == 400, text
        assert name in answer["errors"][0]["field"]
        assert says in answer["errors"][0]["message"]


LINES = ["x: y", "  Co-authored-by: a <a@b>", "Key : v", "\x85A-B: c", "\u2028A-B: c", "\x0bA-B: c"]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    "template", ["{{ body }}", "Own: 1\n{{ body }}", "A{{ title }}\n{{ body }}"]
)
def test_no_line_of_a_pull_request_is_a_trailer(line: str, template: str):
    pull = replace(PULL, title="b: c", body=f"words\n\n{line}")
    made = commit_texts.body(
        template, commit_texts.values_of(pull, "main", "r1", "https://queue.example/r1")
    )
    assert set(trailers_of(f"title\n\n{made}")) <= {"Own"}


def co_authors(*authors: CommitAuthor, by: str = "bob") -> str:
    values = commit_texts.values_of(replace(PULL, author=by), "main", "r1", None, authors)
    return commit_texts.body("Own: 1\n{{ co_authors }}\nLast: 1", values)


@pytest.mark.parametrize(
    ("name", "email", "trailer"),
    [
        ("Eve", "e@x.example", "Eve <e@x.example>"),
        ("", "e@x.example", "e@x.example <e@x.example>"),
        ("Eve <a@x.example>\nSigned-off-by: z", "e @x>", "Eve a@x.example Signed-off-by: z <e@x>"),
        ("@octo-team [skip ci]", "@octo-team", "@ octo-team (skip ci) <@ octo-team>"),
    ],
)
def test_a_co_author_is_one_trailer_whatever_the_name_holds(name: str, email: str, trailer: str):
    made = co_authors(CommitAuthor(name, email, None))
    assert made == f"Own: 1\nCo-authored-by: {trailer}\nLast: 1"
    assert trailers_of(f"title\n\n{made}") == ["Own", "Co-authored-by", "Last"]


@pytest.mark.parametrize(
    ("by", "name", "login"), [("bob", "Robert", "bob"), ("renovate", "renovate[bot]", None)]
)
def test_the_author_of_the_pull_request_is_no_co_author(by: str, name: str, login: str | None):
    assert co_authors(CommitAuthor(name, "a@x.example", login), by=by) == "Own: 1\nLast: 1"


def test_an_account_is_not_the_author_because_its_commits_have_that_name():
    assert "Co-authored-by: bob <" in co_authors(CommitAuthor("bob", "a@x.example", "bobby"))


def test_so_many_co_authors_are_named():
    many = [CommitAuthor(f"n{place}", f"{place}@x.example", None) for place in range(150)]
    assert co_authors(*many).count("Co-authored-by") == commit_texts.CO_AUTHORS_MAX


def test_every_placeholder_has_a_value():
    assert set(commit_texts.values_of(PULL, "main", "r1", "https://queue.example/r1")) == set(
        COMMIT_PLACEHOLDERS
    )


@pytest.mark.parametrize(
    ("title", "made"),
    [
        ("@bob", "@ bob"),
        ("a @bob/team b", "a @ bob/team b"),
        ("mail a@b.example", "mail a@b.example"),
        ("ends in @", "ends in @ x"),
    ],
)
def test_a_mention_is_taken_apart(title: str, made: str):
    values = commit_texts.values_of(
        replace(PULL, title=title), "main", "r1", "https://queue.example/r1"
    )
    template = "{{ title }}x" if title.endswith("@") else "{{ title }}"
    assert commit_texts.title(template, values) == made


def made_of(template: str, authors: tuple[CommitAuthor, ...] = (), **pull: Any) -> tuple[str, str]:
    """Title and body that a template makes of a pull request."""
    values = commit_texts.values_of(replace(PULL, **pull), "main", "r1", None, authors)
    return commit_texts.title(template, values), commit_texts.body(template, values)


LONG: dict[str, Any] = {"title": "t" * 300, "body": "b" * 70_000, "head_branch": "h" * 255}


@pytest.mark.parametrize(
    "template",
    [
        "{{ title }} (#{{ number }})",
        "{{ title }} {{ title }} (#{{ number }})",
        "{{ head_branch }} {{ title }} (#{{ number }})",
        "[{{ run_id }}] {{ title }}, @{{ author }} (#{{ number }})",
    ],
)
def test_a_title_is_cut_where_it_is_long_and_keeps_what_the_template_adds(template: str):
    made, _ = made_of(template, **LONG)
    assert made.endswith("(#1)")
    assert len(made) in {commit_texts.TITLE_MAX - 1, commit_texts.TITLE_MAX}


def test_a_body_is_cut_where_it_is_long_and_keeps_its_trailers():
    many = tuple(CommitAuthor("n" * 2_000, f"{place}@x.example", None) for place in range(50))
    _, made = made_of("{{ body }}\n\n{{ co_authors }}\nFor: {{ number }}", many, **LONG)
    assert len(made) <= commit_texts.BODY_MAX
    *others, last = made.rpartition("\n\n")[2].splitlines()
    assert last == "For: 1"
    assert all(re.fullmatch(r"Co-authored-by: n+ <\d+@x\.example>", line) for line in others)


def test_a_template_that_is_too_long_by_itself_is_cut():
    assert made_of("t" * 300 + "{{ title }}")[0] == "t" * commit_texts.TITLE_MAX


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("<!-- Please describe. -->\nFixes #1", "Fixes #1"),
        ("A\r\n\r\n<!-- one\r\n two -->\r\n\r\nB", "A\n\nB"),
        ("A <!-- one --> B<!---->", "A  B"),
        ("`<!-- x -->` <!-- y -->z", "`<!-- x -->` z"),
        ("```html\n<!-- x -->\n```\n<!-- y -->", "```html\n<!-- x -->\n```"),
        ("~~~\n<!-- in code to the end -->", "~~~\n<!-- in code to the end -->"),
        ("a <!-- b", "a <!-- b"),
        ("<!--> a", "a"),
        ("@<!-- x -->octo-team", "@ octo-team"),
        ("Signed-off<!-- x -->-by: eve", "> Signed-off-by: eve"),
        ("[skip <!-- x -->ci]", "(skip ci)"),
        ("A\n<!-- x -->\n<!-- y -->\n\nskip-checks: true", "A\n> skip-checks: true"),
    ],
)
def test_comments_of_a_template_of_pull_requests_do_not_land(body: str, made: str):
    assert made_of("{{ body }}", body=body)[1] == made


@pytest.mark.parametrize(
    "body", ["<!--", "`", "`<!--", "~~~\n````\n", " \n", "\n    ", "<!---->\n"]
)
@pytest.mark.timeout(20)
def test_no_body_takes_long_to_read(body: str):
    assert commit_texts.without_comments(body * 13_000 + "-->").count("\x00") == 0


# Marks that turn the direction of writing, so that a line reads other than it is.
MARKS = [
    chr(code) for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
]


@pytest.mark.parametrize("mark", MARKS, ids=ascii)
def test_no_value_turns_the_direction_of_a_text(mark: str):
    wild = f"a{mark}b"
    author = (CommitAuthor(wild, f"{wild}@x.example", None),)
    template = "{{ title }} {{ head_branch }} {{ author }}"
    texts = made_of(template, title=wild, head_branch=wild, author=wild)
    bodies = made_of("{{ body }}\n{{ co_authors }}", author, body=wild)[1:]
    assert texts[0] == "ab ab ab"
    assert bodies == ("ab\nCo-authored-by: ab <ab@x.example>",)


async def test_a_merge_without_templates_mentions_and_turns_nothing(world: World):
    await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    number = await world.open(title="Thank \u202e@octo-team [skip ci]", head="for/@octo-team")
    message = await landed(world, number)
    title, _, rest = message.partition("\n\n")
    assert title == f"Merge pull request #{number} from octo/for/@ octo-team"
    assert rest.startswith("Thank @ octo-team (skip ci)\n\n")


async def test_a_title_that_lands_keeps_the_number_after_a_long_value(world: World):
    await world.make_queue(
        merge_method=MergeMethod.MERGE_COMMIT, commit_title="{{ title }} (#{{ number }})"
    )
    number = await world.open(title="a" * 256, message="work")
    message = await landed(world, number)
    assert message.splitlines()[0].endswith(f"a (#{number})")
