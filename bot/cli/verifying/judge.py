"""Compare what a statement says with what git has, and report it for people and as JSON.

Every check ends in a finding: it holds, it is refuted, or it cannot be told here. A landing is
proved when all hold.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from bot.cli import output
from bot.cli.exits import Failed
from bot.cli.verifying import resolutions
from bot.cli.verifying.documents import Document, Documents
from bot.cli.verifying.repository import Repository

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:headgate:landing:v1"
COUNTS = frozenset({"passed", "reused", "excused", "skipped", "optional"})
"""Outcomes of a required check with which something may land."""

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

Json = Mapping[str, object]

_NOT_CHECKED = "Not checked: what CI reported, who asked, who approved. The signer alone says it."
_MARKS = ("proved", "refuted", "cannot tell")


class Verdict(IntEnum):
    """The possible conclusions; the exit code of the command."""

    PROVED = 0
    REFUTED = 1
    UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """The place where commits are to have landed: `HOST/OWNER/NAME` in small letters, and branches.

    `repositories` are the present name and earlier ones; `branches` are empty for any branch.
    """

    repositories: frozenset[str]
    branches: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings about one commit; `number` is its pull request, `weaknesses` its own words.

    `branch` is the one that it landed on. Without `came` no statement says how the commit came.
    """

    commit: str
    number: int | None
    findings: tuple[Finding, ...]
    weaknesses: tuple[str, ...] = ()
    branch: str | None = None
    came: bool = False

    @property
    def verdict(self) -> Verdict:
        """REFUTED if anything is, else UNKNOWN if anything is."""
        return worst(finding.verdict for finding in self.findings)


def worst(verdicts: Iterator[Verdict]) -> Verdict:
    """Return the verdict on several things together."""
    found = set(verdicts)
    for verdict in (Verdict.REFUTED, Verdict.UNKNOWN):
        if verdict in found:
            return verdict
    return Verdict.PROVED


def rebased(repository: Repository, documents: Documents) -> dict[str, list[Document]]:
    """Return the statements about rebases by each commit that they cover."""
    found: dict[str, list[Document]] = {}
    for document in documents.all():
        for commit in _rebased(repository, document):
            found.setdefault(commit, []).append(document)
    return found


def judge(repository: Repository, commit: str, found: list[Document], place: Place) -> Judged:
    """Judge one commit by the statements about it, or about the rebase that it belongs to."""
    if not found:
        missing = "it has no evidence: as far as these files say it did not come through the queue"
        return Judged(commit, None, (Finding(Verdict.UNKNOWN, missing),))
    findings: list[Finding] = []
    weaknesses: list[str] = []
    for document in found:
        try:
            findings += _findings(repository, document, place)
            if document.signer is not None:
                weaknesses += map(str, _list(_predicate(document), "weaknesses"))
        except (KeyError, TypeError, ValueError) as strange:
            text = f"its statement has no usable field {strange}"
            findings.append(Finding(Verdict.REFUTED, text))
    came = [each for each in found if not _adds_nothing(each)]
    if not came:
        text = "it was there before what this evidence is about: nothing says how it came"
        findings.append(Finding(Verdict.UNKNOWN, text))
    predicate = _predicate((came or found)[0])
    number, branch = predicate.get("pullRequest"), predicate.get("branch")
    return Judged(
        commit,
        number if isinstance(number, int) else None,
        tuple(findings),
        tuple(weaknesses),
        branch if isinstance(branch, str) else None,
        bool(came),
    )


def _adds_nothing(document: Document) -> bool:
    """Return whether the branch stood at this commit before: the landing added none."""
    base = _predicate(document).get("base")
    return isinstance(base, dict) and base.get("gitCommit") == document.commit


def _rebased(repository: Repository, document: Document) -> list[str]:
    """Return the commits of a rebase that a statement about its last commit covers."""
    try:
        predicate = _predicate(document)
        if _object(predicate, "landing")["method"] != "REBASE":
            return []
        base = _id(_object(predicate, "base"), "gitCommit")
    except (KeyError, TypeError, ValueError):
        return []
    return _span(repository, base, document.commit)


def _span(repository: Repository, base: str, top: str) -> list[str]:
    """Return the commits of a rebase; none for more than there can be."""
    try:
        return repository.span(base, top)
    except Failed:
        return []


def _findings(repository: Repository, document: Document, place: Place) -> Iterator[Finding]:
    if document.signer is None:
        text = f"it is signed by key {document.named}, which you have not named (--key)"
        yield Finding(Verdict.UNKNOWN, text)
    else:
        yield Finding(Verdict.PROVED, f"signed by key {document.signer.id}")
    statement, predicate = document.statement, _predicate(document)
    types = (statement["_type"], statement["predicateType"])
    if types != (STATEMENT_TYPE, PREDICATE_TYPE):
        yield Finding(Verdict.UNKNOWN, f"this program does not know statements of type {types}")
        return
    yield from _place(predicate, place)
    yield from _subject(repository, document, predicate)
    yield _base(repository, document, predicate)
    yield _member(repository, document, predicate)
    yield from _rules(repository, document, predicate)
    yield from _checks(predicate)


def _place(predicate: Json, place: Place) -> Iterator[Finding]:
    """It is about this repository: another one may have the same commit, and other checks."""
    named = _object(predicate, "repository")
    about = "/".join(str(named[part]) for part in ("host", "owner", "name"))
    if not place.repositories:
        text = f"it is about {about}, and nothing here says which repository this is: name it"
        yield Finding(Verdict.UNKNOWN, f"{text} (--repo)")
    elif about.lower() not in place.repositories:
        here = ", ".join(sorted(place.repositories))
        text = f"it is about {about}, and this is {here}: there it may have had other checks"
        yield Finding(Verdict.UNKNOWN, f"{text}. If it is the same repository, add --repo {about}")
    else:
        yield Finding(Verdict.PROVED, f"it is about {about}, branch {predicate['branch']}")
    if place.branches and predicate["branch"] not in place.branches:
        text = f"it landed on {predicate['branch']}, where other checks may be required"
        yield Finding(Verdict.UNKNOWN, text)


def _subject(repository: Repository, document: Document, predicate: Json) -> Iterator[Finding]:
    """The commit has the tree that is stated, and it is the tested one or has its change."""
    tree = repository.tree(document.commit)
    (subject,) = _list(document.statement, "subject")
    stated = _id(_object(_mapping(subject), "digest"), "gitTree")
    if tree != stated:
        yield Finding(Verdict.REFUTED, f"its tree is {tree}, stated is {stated}")
        return
    yield Finding(Verdict.PROVED, f"commit and tree {stated} are in git as stated")
    landing = _object(predicate, "landing")
    expected = _id(_object(landing, "expectedTree"), "gitTree")
    tested = _id(_object(landing, "testedTree"), "gitTree")
    if (tree == tested) is not (landing["isTestedTree"] is True):
        yield Finding(Verdict.REFUTED, "it says wrongly whether its tree is the tested one")
    if landing["proof"] == "same_change":
        yield _same_change(repository, document, predicate)
    elif tree != expected:
        yield Finding(Verdict.REFUTED, f"its tree is not the tested prefix {expected}")
    run = _object(predicate, "run")
    last = run["tree"]
    if isinstance(last, dict) and _id(last, "gitTree") != tested:
        yield Finding(Verdict.REFUTED, "the test run had another tree than the one called tested")


def _same_change(repository: Repository, document: Document, predicate: Json) -> Finding:
    landing = _object(predicate, "landing")
    before = _id(_object(landing, "parentTree"), "gitTree")
    after = _id(_object(landing, "expectedTree"), "gitTree")
    base = _id(_object(predicate, "base"), "gitCommit")
    if document.signer is not None and not repository.has(after):
        _rebuild(repository, predicate)
    if not all(map(repository.has, (before, after, base))):
        return Finding(
            Verdict.UNKNOWN,
            "others landed while it was tested. The tested trees are not in this repository, and "
            "git does not make them again from the run's base and the heads of its pull requests: "
            "whether the change is the same is not checked",
        )
    if repository.change(before, after) != repository.change(base, document.commit):
        return Finding(Verdict.REFUTED, "it is another change than the tested one")
    return Finding(Verdict.PROVED, "its change is the tested one, path by path")


def _rebuild(repository: Repository, predicate: Json) -> None:
    """Merge the heads of the run as its test branch did, as far as that gives the stated trees.

    A tree of the stated id is the tested one, however it was made. The test branch is gone.
    """
    run = _object(predicate, "run")
    now = _id(_object(run, "base"), "gitCommit")
    is_merge = _object(predicate, "landing")["method"] == "MERGE_COMMIT"
    for step in map(_mapping, _list(run, "steps")):
        head, commit = (_id(_object(step, name), "gitCommit") for name in ("head", "commit"))
        if step["addsNoCommit"] is True:
            continue
        if not repository.has(commit):
            tree = repository.merged_tree(now, head)
            if tree is None or tree != _id(_object(step, "tree"), "gitTree"):
                return
            made = repository.commit_of(tree, (now, head) if is_merge else (now,))
            if made is None:
                return
            commit = made
        now = commit


def _base(repository: Repository, document: Document, predicate: Json) -> Finding:
    """The target was at the stated commit before, and nothing else lies between."""
    base = _id(_object(predicate, "base"), "gitCommit")
    if base == document.commit:
        return Finding(Verdict.PROVED, "it adds no commit: the branch contained it before")
    if not repository.has(base):
        return Finding(Verdict.UNKNOWN, f"its base {base} is not in this repository: fetch it")
    method = _object(predicate, "landing")["method"]
    span = _span(repository, base, document.commit) if method == "REBASE" else [document.commit]
    if not span or repository.parents(span[-1])[:1] != [base]:
        return Finding(Verdict.REFUTED, f"it does not stand on {base}")
    return Finding(Verdict.PROVED, f"stands on {base}, where the branch was before")


def _member(repository: Repository, document: Document, predicate: Json) -> Finding:
    """The pull request's head is in the commit, or its change is the same."""
    members = [_mapping(each) for each in _list(predicate, "members")]
    own = [each for each in members if each["isSubject"] is True]
    if len(own) != 1 or own[0]["number"] != predicate["pullRequest"]:
        return Finding(Verdict.REFUTED, "it does not say which member of the run it is about")
    head = _id(_object(own[0], "head"), "gitCommit")
    number = own[0]["number"]
    if not repository.has(head):
        return Finding(
            Verdict.UNKNOWN,
            f"the head {head} of #{number} is not in this repository: fetch it, on GitHub by "
            f"`git fetch origin refs/pull/{number}/head`",
        )
    base = _id(_object(predicate, "base"), "gitCommit")
    landing = _object(predicate, "landing")
    if landing["method"] == "MERGE_COMMIT" and base != document.commit:
        if repository.parents(document.commit) != [base, head]:
            return Finding(Verdict.REFUTED, f"it is not the merge of the head {head} of #{number}")
        return Finding(Verdict.PROVED, f"merges the head {head} of #{number}")
    if base == document.commit:
        return _contained(repository, document.commit, head, number)
    below = [_id(_object(each, "head"), "gitCommit") for each in members if each is not own[0]]
    if _resolved(predicate):
        return Finding(Verdict.PROVED, f"merges the head {head} of #{number} by declared rules")
    return _same_work(repository, document.commit, (base, head), below)


def _rules(repository: Repository, document: Document, predicate: Json) -> Iterator[Finding]:
    """Conflicts that rules resolved give the same files when they are resolved again."""
    rules = _resolved(predicate)
    if not rules:
        return
    paths = ", ".join(sorted(rules))
    members = [_mapping(each) for each in _list(predicate, "members")]
    heads = {each["number"]: _id(_object(each, "head"), "gitCommit") for each in members}
    head = heads.pop(predicate["pullRequest"])
    sides, below = (_id(_object(predicate, "base"), "gitCommit"), head), [*heads.values()]
    found = resolutions.is_recomputed(repository, document.commit, sides, below, rules)
    if found is None:
        yield Finding(Verdict.UNKNOWN, f"what rules resolved in {paths} cannot be computed again")
    elif found:
        named = ", ".join(sorted(set(rules.values())))
        yield Finding(Verdict.PROVED, f"conflicts are resolved by rule {named} in {paths}")
    else:
        yield Finding(Verdict.REFUTED, f"the rules do not give what it has in {paths}")


def _resolved(predicate: Json) -> dict[str, str]:
    """Return the rules that resolved conflicts of the pull request, by path.

    Statements of before there were rules do not speak of them.
    """
    run = predicate.get("run")
    steps = run.get("steps") if isinstance(run, dict) else None
    return {
        str(path): str(_mapping(one)["rule"])
        for step in map(_mapping, steps if isinstance(steps, list) else [])
        if step.get("number") == predicate["pullRequest"] and "resolved" in step
        for one in _list(step, "resolved")
        for path in _list(_mapping(one), "paths")
    }


def _contained(repository: Repository, commit: str, head: str, number: object) -> Finding:
    if repository.contains(commit, head) or repository.merged_tree(commit, head) == repository.tree(
        commit
    ):
        return Finding(Verdict.PROVED, f"contains the head {head} of #{number}")
    return Finding(Verdict.UNKNOWN, f"whether it contains the head {head} cannot be told by git")


def _same_work(
    repository: Repository, commit: str, place: tuple[str, str], below: list[str]
) -> Finding:
    """Compare a squash or a rebase with its head: the tree of the merge, or the change itself."""
    base, head = place
    merged = repository.merged_tree(base, head)
    if merged is not None and merged == repository.tree(commit):
        return Finding(Verdict.PROVED, f"has the tree of {head} merged into its base")
    own = repository.patch_id(base, commit)
    starts = [repository.merge_base(base, head)]
    starts += [
        each
        for each in below
        if each != head and repository.has(each) and repository.contains(head, each)
    ]
    found = [repository.patch_id(start, head) for start in starts if start is not None]
    if own is not None and own in found:
        return Finding(Verdict.PROVED, f"has the change of the head {head}")
    if merged is None:
        text = f"the head {head} conflicts with the base: whether the change is its own is unknown"
        return Finding(Verdict.UNKNOWN, text)
    return Finding(Verdict.REFUTED, f"it is another change than that of the head {head}")


def _checks(predicate: Json) -> Iterator[Finding]:
    """Every required name has one outcome with which it may land, on a commit of this landing."""
    required = [
        str(_mapping(each)["name"]) for each in _list(_object(predicate, "required"), "names")
    ]
    checks = [_mapping(each) for each in _list(predicate, "checks")]
    names = [str(each["name"]) for each in checks]
    if sorted(names) != sorted(required):
        yield Finding(Verdict.REFUTED, f"required are {required}, evidence is about {names}")
        return
    bad = [
        f"{each['name']} ({each['outcome']})" for each in checks if each["outcome"] not in COUNTS
    ]
    if bad:
        yield Finding(Verdict.REFUTED, f"required checks without a pass: {', '.join(bad)}")
        return
    known = _commits(predicate)
    for each in checks:
        if each["commit"] is not None and _id(_object(each, "commit"), "gitCommit") not in known:
            yield Finding(Verdict.REFUTED, f"{each['name']} ran on a commit of no run stated here")
            return
    yield Finding(Verdict.PROVED, f"{len(checks)} required checks, each with an outcome")


def _commits(predicate: Json) -> frozenset[str]:
    """Return the commits that a check of this landing may be about."""
    runs = [each for name in ("run", "reusedRun") if (each := predicate[name]) is not None]
    tested = [_mapping(each)["commit"] for each in runs]
    heads = [_mapping(each)["head"] for each in _list(predicate, "members")]
    return frozenset(_id(_mapping(each), "gitCommit") for each in (*tested, *heads) if each)


def _predicate(document: Document) -> Json:
    return _object(document.statement, "predicate")


def _object(holder: Json, name: str) -> Json:
    return _mapping(holder[name])


def _mapping(value: object) -> Json:
    if not isinstance(value, dict):
        raise TypeError("that is an object")
    return value


def _list(holder: Json, name: str) -> list[object]:
    value = holder[name]
    if not isinstance(value, list):
        raise TypeError(name)
    return value


def _id(holder: Json, name: str) -> str:
    """Return an object id. Raises ValueError for anything else, so that git sees no option."""
    value = holder[name]
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise ValueError(name)
    return value


def show(judged: Sequence[Judged], faults: Sequence[str]) -> None:
    """Print each commit with what was found; what holds is shown only of a single commit."""
    for fault in faults:
        output.line(f"refuted  {fault}")
    for each in judged:
        number = "" if each.number is None else f" #{each.number}"
        branch = "" if each.branch is None else f" on {each.branch}"
        output.line(f"{_MARKS[each.verdict]}  {each.commit}{number}{branch}")
        for finding in each.findings:
            if finding.verdict or len(judged) == 1:
                output.line(f"  {_MARKS[finding.verdict]}: {finding.text}")
        for weakness in each.weaknesses:
            output.line(f"  note: {weakness}")
    strangers = _strangers(judged)
    if strangers:
        output.line(f"Without evidence: {', '.join(strangers)}")
    output.line(_NOT_CHECKED)


def _strangers(judged: Sequence[Judged]) -> list[str]:
    """Return the commits without evidence of a landing."""
    return [each.commit for each in judged if not each.came]


def record_of(
    judged: Sequence[Judged], faults: Sequence[str], verdict: Verdict
) -> dict[str, object]:
    """Return the same as one JSON value."""
    return {
        "verdict": _MARKS[verdict],
        "faults": list(faults),
        "withoutEvidence": _strangers(judged),
        "notChecked": _NOT_CHECKED,
        "commits": [
            {
                "commit": each.commit,
                "pullRequest": each.number,
                "branch": each.branch,
                "verdict": _MARKS[each.verdict],
                "findings": [
                    {"verdict": _MARKS[finding.verdict], "text": finding.text}
                    for finding in each.findings
                ],
                "weaknesses": list(each.weaknesses),
            }
            for each in judged
        ],
    }
