"""Which service, repository and branch a command means."""

import subprocess

import pytest

from bot.cli import destination
from bot.cli.exits import Exit, Failed
from service.vocabulary import RepoRef

WIDGETS = RepoRef("github.com", "octo", "widgets")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("octo/widgets", WIDGETS),
        ("github.com/octo/widgets", WIDGETS),
        ("GitHub.com/octo/widgets.git", WIDGETS),
        ("github.localhost/octo/widgets", RepoRef("github.localhost", "octo", "widgets")),
        ("127.0.0.1:8643/octo/widgets", RepoRef("127.0.0.1:8643", "octo", "widgets")),
        ("group/team/widgets", RepoRef("github.com", "group/team", "widgets")),
        ("git.example.org/group/team/x", RepoRef("git.example.org", "group/team", "x")),
        ("widgets", None),
        ("octo//widgets", None),
        ("", None),
    ],
)
def test_a_repository_is_named_with_or_without_its_host(text, expected):
    assert destination.parse_repository(text) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("git@github.com:octo/widgets.git", WIDGETS),
        ("github.com:octo/widgets", WIDGETS),
        ("ssh://git@github.com:22/octo/widgets.git", WIDGETS),
        ("https://github.com/octo/widgets.git", WIDGETS),
        ("https://x:token@github.com/octo/widgets", WIDGETS),
        (
            "http://github.localhost:8643/octo/widgets.git",
            RepoRef("github.localhost:8643", "octo", "widgets"),
        ),
        ("/srv/git/widgets.git", None),
        ("", None),
    ],
)
def test_a_remote_says_host_owner_and_name(address, expected):
    assert destination.parse_remote(address) == expected


def test_the_option_wins_over_the_environment_and_that_over_the_checkout(monkeypatch, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    remote = ["git", "remote", "add", "origin", "git@github.com:octo/checkout.git"]
    subprocess.run(remote, cwd=tmp_path, check=True)
    assert destination.find_repository(None).name == "checkout"
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/environment")
    assert destination.find_repository(None).name == "environment"
    assert destination.find_repository("octo/option").name == "option"


def test_in_ci_the_host_is_that_of_ci(monkeypatch):
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example.org")
    assert destination.find_repository("octo/widgets").host == "github.example.org"


@pytest.mark.parametrize("named", [None, "widgets"])
def test_without_a_repository_one_is_asked_for(named):
    with pytest.raises(Failed) as failed:
        destination.find_repository(named)
    assert failed.value.code == Exit.USAGE
    assert "--repo OWNER/NAME" in failed.value.todo


def test_a_token_comes_from_a_file_or_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADGATE_TOKEN", "from-environment")
    (tmp_path / "token").write_text("from-file\n")
    assert destination.find_token(None) == "from-environment"
    assert destination.find_token(tmp_path / "token") == "from-file"


def test_a_token_file_that_cannot_be_read_is_named_once(tmp_path):
    with pytest.raises(Failed) as failed:
        destination.find_token(tmp_path / "nope")
    assert failed.value.what == f"{tmp_path / 'nope'} cannot be read (No such file or directory)"


@pytest.mark.parametrize("token", ["", "two\nlines", "\N{GREEK SMALL LETTER ALPHA}"])
def test_what_is_no_token_is_never_sent(monkeypatch, token):
    monkeypatch.setenv("HEADGATE_TOKEN", token)
    with pytest.raises(Failed) as failed:
        destination.find_token(None)
    assert failed.value.code == Exit.USAGE


@pytest.mark.parametrize("url", ["queue.example.org", "ftp://queue.example.org", "https://"])
def test_an_address_must_be_one_of_http(url):
    with pytest.raises(Failed, match="not an http address"):
        destination.find_url(url)


def branch_of_queue(branch=None):
    return destination.find_queue(None, None, None, branch).branch


def test_a_named_branch_is_taken_without_asking(api):
    assert branch_of_queue("develop") == "develop"
    assert api.asked == []


def test_the_only_queue_of_the_repository_is_found(api):
    api.says("/listQueues", {"queues": [{"branch": "release/2"}]})
    assert branch_of_queue() == "release/2"
    (_, body, _), *_ = api.asked
    assert body == {
        "repo": {"host": "github.com", "owner": "octo", "name": "widgets"},
        "take": 100,
    }


def test_several_queues_make_it_name_one(api):
    api.says("/listQueues", {"queues": [{"branch": "main"}, {"branch": "release/2"}]})
    with pytest.raises(Failed, match="main, release/2") as failed:
        branch_of_queue()
    assert failed.value.code == Exit.USAGE


def test_no_queue_is_not_found(api):
    api.says("/listQueues", {"queues": []})
    with pytest.raises(Failed, match="octo/widgets has no queue") as failed:
        branch_of_queue()
    assert failed.value.code == Exit.NOT_FOUND


def test_the_branch_of_a_pull_request_is_asked_for_once(api):
    api.says("/findQueue", {"prNumber": 3, "targetBranch": "release/2"})
    queue = destination.find_queue(None, None, None, None)
    assert [queue.branch_of(3), queue.branch_of(3)] == ["release/2", "release/2"]
    repo = {"host": "github.com", "owner": "octo", "name": "widgets"}
    assert [(each[0], each[1]) for each in api.asked] == [
        ("/findQueue", {"repo": repo, "pr": {"number": 3}})
    ]


def test_a_token_that_cannot_submit_means_the_only_queue(api):
    api.refuses("/findQueue", 404, "never_submitted")
    api.says("/listQueues", {"queues": [{"branch": "main"}]})
    assert destination.find_queue(None, None, None, None).branch_of(3) == "main"


def test_a_base_branch_without_a_queue_is_said_with_what_to_do(api):
    api.refuses("/findQueue", 404, "queue_not_found", 'Branch "main" has no queue.')
    with pytest.raises(Failed, match='Branch "main" has no queue') as failed:
        destination.find_queue(None, None, None, None).branch_of(3)
    assert failed.value.todo == "Make one: headgate queue create --branch BRANCH"


def test_a_repository_without_a_host_is_on_the_host_of_the_token(api, monkeypatch):
    monkeypatch.delenv("GITHUB_SERVER_URL")
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.localhost"}})
    found = destination.find_queue(None, None, None, "main").repo
    assert found == RepoRef("github.localhost", "octo", "widgets")
    named = destination.find_queue(None, None, "github.com/octo/widgets", "main").repo
    assert named == WIDGETS
    assert api.paths() == ["/tokens/self"]


def test_an_unknown_repository_is_not_found(api):
    api.refuses("/listQueues", 404, "repository_not_found", "There is no octo/widgets.")
    with pytest.raises(Failed, match="There is no octo/widgets") as failed:
        branch_of_queue()
    assert failed.value.code == Exit.NOT_FOUND
