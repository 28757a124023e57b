"""Workflow files to what they say about failures. Runs in a parser process.

Rules: GitHub's "Workflow syntax" and "Contexts reference" (docs/design/early-failures.md 4). What
is not understood says nothing.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bot.github import conditions
from bot.github.workflow_files import RULES
from service.provider.ci_plans import PlannedJob
from service.repofile import document
from service.repofile.document import Unreadable

JOBS_MAX = 500
"""Jobs of a file; one with more is not understood. GitHub's matrix has at most 256 jobs."""

VERSION_CHARS = 16
LOCAL = "./"
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


@dataclass(slots=True)
class _Node:
    """A job of a file, or of a file that it calls; `is_called` stands for all jobs of the call."""

    name: tuple[str, ...]
    needs: frozenset[str]
    may_fail: bool
    steps: frozenset[str] = frozenset()
    body: list[object] = field(default_factory=list)
    is_called: bool = False
    runs_anyway: bool = False


def pieces(contents: Mapping[str, bytes], folder: str) -> Iterator[PlannedJob]:
    """Return the jobs of all files, in the order of the files' names.

    `contents` are by file name. A file that cannot be read is left out.
    """
    files: dict[str, Mapping[str, object]] = {}
    for name in sorted(contents):
        read = document.outcome(contents[name], RULES)
        if not isinstance(read, Unreadable) and isinstance(read.value, Mapping):
            files[f"{folder}/{name}"] = read.value
    for file in files:
        yield from _jobs_of(file, _nodes(file, files))


def _nodes(file: str, files: Mapping[str, Mapping[str, object]]) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for key, job in _bodies(files[file]).items():
        node = _Node(_name(key, job), _needs(job), _may_fail(job), _steps(job), [job])
        nodes[key] = node
        node.runs_anyway = conditions.runs_although_skipped(job.get("if"))
        called = job.get("uses")
        if called is None:
            continue
        node.is_called = True
        inner = files.get(called.removeprefix(LOCAL)) if isinstance(called, str) else None
        if inner is None:
            # What it calls is not here, so it is not known which of its jobs may fail.
            node.may_fail = True
            continue
        for below, body in _bodies(inner).items():
            if "uses" in body:
                node.may_fail = True
                continue
            place = f"{key}/{below}"
            needs = frozenset(f"{key}/{need}" for need in _needs(body))
            name = _joined(node.name, _name(below, body))
            inside = _Node(name, needs, _may_fail(body), _steps(body), [job, body])
            inside.runs_anyway = conditions.runs_although_skipped(body.get("if"))
            nodes[place] = inside
            node.needs |= {place}
    return nodes if len(nodes) <= JOBS_MAX else {}


def _jobs_of(file: str, nodes: Mapping[str, _Node]) -> Iterator[PlannedJob]:
    for key, node in nodes.items():
        if node.is_called:
            continue
        yield PlannedJob(
            file=file,
            key=key,
            name=node.name,
            stops=_stops(key, nodes),
            stopped_surely=_stops(key, nodes, surely=True),
            steps=node.steps,
            may_fail=node.may_fail,
            version=_version(node),
        )


def _stops(key: str, nodes: Mapping[str, _Node], *, surely: bool = False) -> frozenset[str]:
    """Return the jobs that a job needs, directly or by others, and whose failure counts there.

    `surely`: only those by whose failure CI skips it, since no job on the way runs anyway.
    """
    found: set[str] = set()
    waiting = [key]
    while waiting:
        job = nodes[waiting.pop()]
        if surely and job.runs_anyway:
            continue
        for need in job.needs:
            node = nodes.get(need)
            if node is not None and not node.may_fail and need not in found:
                found.add(need)
                waiting.append(need)
    return frozenset(found)


def _version(node: _Node) -> str:
    """Return a digest of what a file says about one job."""
    text = json.dumps(node.body, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:VERSION_CHARS]


def _bodies(content: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    jobs = content.get("jobs")
    if not isinstance(jobs, Mapping):
        return {}
    return {str(key): job for key, job in jobs.items() if isinstance(job, Mapping)}


def _needs(job: Mapping[str, object]) -> frozenset[str]:
    needs = job.get("needs")
    listed = [needs] if isinstance(needs, str) else needs if isinstance(needs, list) else []
    return frozenset(each for each in listed if isinstance(each, str))


def _may_fail(place: Mapping[str, object]) -> bool:
    """Return whether a job or step may fail: also if an expression decides."""
    return place.get("continue-on-error", False) is not False


def _name(key: str, job: Mapping[str, object]) -> tuple[str, ...]:
    """Return the literal parts of the names under which a job reports."""
    given = job.get("name")
    shown = given if isinstance(given, str) and given else key
    parts = tuple(_EXPRESSION.split(shown))
    strategy = job.get("strategy")
    if len(parts) > 1 or strategy is None:
        return parts
    is_matrix = isinstance(strategy, Mapping) and "matrix" in strategy
    return (f"{shown} (", ")") if is_matrix else parts


def _joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    return (*outer[:-1], f"{outer[-1]} / {inner[0]}", *inner[1:])


def _steps(job: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the steps whose failure fails the job, as GitHub shows them."""
    steps = job.get("steps")
    listed = (
        [each for each in steps if isinstance(each, Mapping)] if isinstance(steps, list) else []
    )
    forgiven = {_step_name(each) for each in listed if _may_fail(each)}
    named = {_step_name(each) for each in listed if not _may_fail(each)}
    return frozenset(name for name in named - forgiven if name is not None)


def _step_name(step: Mapping[str, object]) -> str | None:
    """Return the name that the runner gives a step; None if an expression is part of it."""
    for text, prefix in (
        (step.get("name"), ""),
        (step.get("run"), "Run "),
        (step.get("uses"), "Run "),
    ):
        if isinstance(text, str) and text.strip():
            line = text.strip().splitlines()[0] if prefix else text
            return None if "${{" in line else f"{prefix}{line}"
    return None
