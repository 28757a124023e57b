"""`headgate verify`: check signed evidence of landings, offline and without the service."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import destination, output
from bot.cli.exits import Exit, Failed
from bot.cli.options import AsJson
from bot.cli.verifying.repository import Repository

app = typer.Typer()


@app.command()
def verify(
    commit: Annotated[str, typer.Argument(help="A commit, or a range as v1.0..main.")],
    evidence: Annotated[
        list[Path] | None,
        typer.Option(
            "--evidence", help="File of `headgate evidence`; repeatable. Default: git notes."
        ),
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", help="File with public keys that you trust; repeatable."),
    ] = None,
    checkout: Annotated[
        Path, typer.Option("--checkout", help="The repository. Default: this folder.")
    ] = Path(),
    repo: Annotated[
        list[str] | None,
        typer.Option(
            "--repo",
            help="[HOST/]OWNER/NAME of this repository, now or before; repeatable. Default: that "
            "of the remote origin.",
        ),
    ] = None,
    branch: Annotated[
        list[str] | None,
        typer.Option("--branch", help="It landed on this branch; repeatable. Default: any."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check evidence of landings by git alone. Exit: 0 proved, 1 refuted, 2 cannot tell."""
    from bot.cli.verifying import documents, judge

    repository = Repository(checkout)
    commits = commits_of(repository, commit)
    keys = documents.read_keys(key or ())
    found = documents.Documents()
    for path in evidence or ():
        found.add(str(path), destination.read_text(path), keys)
    if not evidence:
        for each in commits:
            found.add(f"note of {each[:12]}", repository.note(each) or "", keys)
    place = judge.Place(repositories_of(repository, repo or ()), frozenset(branch or ()))
    covered = judge.rebased(repository, found)
    judged = [
        judge.judge(repository, each, found.by_commit.get(each) or covered.get(each, []), place)
        for each in commits
    ]
    verdicts = [each.verdict for each in judged]
    if found.faults:
        verdicts.append(judge.Verdict.REFUTED)
    verdict = judge.worst(iter(verdicts))
    if as_json:
        output.print_json(judge.record_of(judged, found.faults, verdict))
    else:
        judge.show(judged, found.faults)
    raise typer.Exit(int(verdict))


def repositories_of(repository: Repository, given: Iterable[str]) -> frozenset[str]:
    """Return `HOST/OWNER/NAME` of each given name, else of the remote. Raises Failed(USAGE)."""
    refs = [destination.required_repository(each) for each in given]
    origin = None if refs else destination.parse_remote(repository.remote())
    return frozenset(
        f"{each.host}/{each.slug}".lower() for each in refs + ([origin] if origin else [])
    )


def commits_of(repository: Repository, text: str) -> list[str]:
    """Return the commits to check, the oldest first. Raises Failed(USAGE)."""
    first, dots, last = text.partition("..")
    if not dots:
        return [repository.commit(text)]
    if last.startswith("."):
        raise Failed(Exit.USAGE, f"{text!r} is no range", "Write it with two dots: v1.0..main")
    base, top = repository.commit(first or "HEAD"), repository.commit(last or "HEAD")
    found = repository.span(base, top)
    if not found:
        raise Failed(Exit.USAGE, f"{text} has no commit")
    return found[::-1]
