"""`suspects`: the tests that a CI job should run first, by names that its runner takes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

import typer

from bot.cli import destination, options, output
from bot.cli.exits import Exit, Failed
from bot.cli.job_service import JobService
from bot.uploader import ci, transport
from bot.uploader.transport import Json, Request, RequestFailed
from service.vocabulary import RepoRef

LIST = "/flaky-tests/list-suspected-tests"
LIMIT, LIMIT_MAX = 100, 200

app = typer.Typer()


class Names(StrEnum):
    """The spellings of names: for people, node ids of pytest, files for Jest."""

    NAMES = "names"
    PYTEST = "pytest"
    JEST = "jest"


@app.command(name="suspects")
def list_suspects(
    spelling: Annotated[
        Names,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="`names`, node ids for `pytest`, or files for `jest`.",
        ),
    ] = Names.NAMES,
    limit: Annotated[
        int, typer.Option("--limit", help="At most so many.", min=1, max=LIMIT_MAX)
    ] = LIMIT,
    sha: Annotated[str | None, typer.Option("--sha", help="Commit under test.")] = None,
    repo: options.Repo = None,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Print the tests to run first for the commit under test, the most suspected first."""
    repository = destination.find_repository(repo)
    tested = sha or str(ci.metadata_of(os.environ).get("sha", ""))
    if not tested:
        raise Failed(Exit.USAGE, "no commit is known", "Give --sha, or run in a checkout")
    job = JobService(destination.find_url(url), token_file, repository)
    try:
        service = job.connect(job.find_token(), output.log, transport.TIMEOUT_S)
        tests = tests_of(service.send(request_of(job, tested)))[:limit]
    except RequestFailed as failed:
        code = Exit.UNREACHABLE if isinstance(failed, transport.Transient) else Exit.REFUSED
        raise Failed(code, failed.reason) from failed
    if as_json:
        output.print_json(document(tests))
        return Exit.DONE
    for line in spelled(tests, spelling):
        output.line(line)
    return Exit.DONE


def request_of(job: JobService, sha: str) -> Request:
    """Return the request for the tests to run first."""
    repository: RepoRef = job.repository
    query = {
        "host": repository.host,
        "owner": repository.owner,
        "name": repository.name,
        "sha": sha,
    }
    return Request(f"{LIST}?{urlencode(query)}")


def tests_of(answer: Mapping[str, object]) -> list[Json]:
    """Return the tests of an answer, as `document` has them. Raises RequestFailed."""
    try:
        return [
            {
                "name": str(each["name"]),
                "classname": str(each["classname"]),
                "parent": str(each["parent"]),
                "file": str(each["file_path"]),
                "because": str(each["because"]).lower(),
            }
            for each in transport.objects(answer["tests"])
        ]
    except (KeyError, TypeError) as invalid:
        raise RequestFailed("the answer is no list of tests: is it Headgate") from invalid


def document(tests: Sequence[Json]) -> Json:
    """Return the content of the file that HEADGATE_SUSPECTS names."""
    return {"v": 1, "tests": list(tests)}


def spelled(tests: Iterable[Json], spelling: Names) -> list[str]:
    """Return the names in this spelling, each once; tests without a usable one are left out."""
    names = (_spelled(each, spelling) for each in tests)
    return list(dict.fromkeys(name for name in names if name and "\n" not in name))


def _spelled(test: Json, spelling: Names) -> str:
    name, classname, file = (str(test[each]) for each in ("name", "classname", "file"))
    if spelling is Names.JEST:
        return file
    if spelling is Names.PYTEST:
        return _node_id(name, classname, file)
    place = file or classname
    return f"{place}::{name}" if place else name


def _node_id(name: str, classname: str, file: str) -> str:
    """Return the node id; a class `a.b.C` is in the file `a/b.py`, if there is one here."""
    parts = classname.split(".") if classname else []
    for count in range(len(parts), 0, -1):
        path = "/".join(parts[:count]) + ".py"
        if path == file or f"/{path}".endswith(f"/{file}") or (not file and os.path.isfile(path)):
            return "::".join((path, *parts[count:], name))
    return f"{file}::{name}" if file.endswith(".py") else ""
