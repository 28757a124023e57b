"""A small real HTTP server that answers as our API does, each answer written down beforehand."""

import asyncio
import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from multidict import CIMultiDict
from pydantic import ValidationError

from bot.uploader.transport import Clock
from service.http import callers
from service.http.models import unknown
from service.http.route import VERSIONED, Posted
from service.process.api.routes import ROUTES

TOKEN = "hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjl"
REQUEST_BYTES_MAX = 65_536
DRIP_S = 0.02
UNKNOWN_TOKEN = callers.NO_TOKEN
SUSPECTS = "/flaky-tests/list-suspected-tests"
"""Every command that runs tests asks for these first; unless told otherwise there are none."""


@dataclass
class Service:
    """Answers by path, the last one for ever; `asked` holds (path, body or query, headers)."""

    url: str = ""
    answers: dict[str, list] = field(default_factory=dict)
    asked: list[tuple[str, dict, CIMultiDict[str]]] = field(default_factory=list)

    def says(self, path: str, body: dict, status: int = 200, **headers: str) -> None:
        """Add an answer to a path."""
        self.answers.setdefault(path, []).append((status, body, headers))

    def refuses(self, path: str, status: int, code: str, detail: str = "no.", **more) -> None:
        """Add a problem answer to a path."""
        problem = {"type": "", "title": "No", "status": status, "code": code, "detail": detail}
        self.says(path, problem | {"request_id": "r1"} | more, status)

    def cuts(self, path: str) -> None:
        """Add an answer to a path that breaks off in the middle of its body."""
        self.answers.setdefault(path, []).append((200, None, {"Content-Length": "900"}))

    def also_good(self, request: web.Request) -> str:
        """The token itself where a job's own OIDC token came for an upload."""
        is_oidc = request.headers.get("Authorization", "").startswith("Bearer eyJ")
        return TOKEN if is_oidc and request.path.endswith("/upload-test-results") else ""

    def paths(self) -> list[str]:
        """What was asked, in order."""
        return [path for path, _, _ in self.asked]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next answer of the path."""
        path = request.path.removeprefix("/v1")
        if path == SUSPECTS and path not in self.answers:
            return web.json_response({"tests": []})
        if request.content_type == "multipart/form-data":
            asked = await form_of(request)
        elif request.method == "POST":
            asked = json.loads(await request.read())
        else:
            asked = dict(request.query)
        self.asked.append((path, asked, request.headers.copy()))
        if TOKEN not in (request.headers.get("x-api-token"), self.also_good(request)):
            return web.Response(status=401, text=UNKNOWN_TOKEN)
        waiting = self.answers[path]
        status, body, headers = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if body is None:
            return await cut(request, headers)
        return web.json_response(body, status=status, headers=headers)


async def cut(request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
    """The beginning of an answer, and the end of its connection."""
    answer = web.StreamResponse(headers=headers)
    await answer.prepare(request)
    await answer.write(b'{"upload_id": "b7')
    if request.transport is not None:
        request.transport.close()
    return answer


async def form_of(request: web.Request) -> dict:
    """The metadata of an upload, and its files by name, unpacked; aiohttp takes it apart."""
    sent = await request.post()
    files = {
        each.filename: gzip.decompress(each.file.read())
        for each in sent.getall("file", ())
        if isinstance(each, web.FileField)
    }
    owners = {"codeowners": sent["codeowners"]} if "codeowners" in sent else {}
    return {**json.loads(str(sent["metadata"])), "files": files, **owners}


MODELS = {route.path: route.model for route in ROUTES if isinstance(route, Posted)}
PARTS = ("files", "codeowners")


def unknown_fields(path: str, sent: dict) -> list[tuple[int | str, ...]]:
    """The places in a body that the endpoint does not know."""
    model = MODELS.get(f"{VERSIONED}{path}")
    if model is None:
        return []
    try:
        model.model_validate({name: sent[name] for name in sent if name not in PARTS})
    except ValidationError as invalid:
        return [each["loc"] for each in invalid.errors() if each["type"] == unknown.FOUND]
    return []


@contextlib.contextmanager
def served() -> Iterator[Service]:
    """The service in a thread of its own, so that commands may run a loop of theirs."""
    service = Service()
    ready = threading.Event()
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        application = web.Application(client_max_size=32 * 1024 * 1024)
        application.router.add_route("*", "/{tail:.*}", service.answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        service.url = f"http://{host}:{port}"
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(over.set))
        ready.set()
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield service
    finally:
        stops[0]()
        thread.join()


@contextlib.contextmanager
def answering(answer: bytes, drop: bytes = b"") -> Iterator[str]:
    """The address of a server that sends one caller these bytes, and does not hang up.

    Who asks for suspected tests is no such caller, and gets nothing.

    With a drop it goes on to send it, every 20 ms.
    """
    over = threading.Event()

    def answer_one() -> None:
        connection, _ = listening.accept()
        while SUSPECTS.encode() in connection.recv(REQUEST_BYTES_MAX):
            connection.close()
            connection, _ = listening.accept()
        with connection:
            connection.sendall(answer)
            with contextlib.suppress(OSError):
                while not over.wait(DRIP_S):
                    connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer_one)
        thread.start()
        try:
            yield "http://{}:{}".format(*listening.getsockname())
        finally:
            over.set()
            thread.join()


class Steps:
    """A clock that jumps over every sleep, and writes it down."""

    def __init__(self):
        self.slept: list[float] = []

    def as_clock(self) -> Clock:
        """The clock as clients take it."""
        return Clock(self.slept.append, lambda: sum(self.slept), lambda: 1_772_409_600.0)


def a_record(state: str = "PENDING", **differences) -> dict:
    """A pull request's record."""
    reasons = {"MERGED": "It is merged.", "FAILED": "`test` failed.", "CANCELLED": "by alice"}
    record = {
        "id": "0f8c6c1e-5b0e-4f3e-9d0a-3b1a54c1b7de",
        "state": state,
        "stateChangedAt": "2026-03-02T14:19:02.000Z",
        "priorityValue": 100,
        "priorityName": "medium",
        "prTitle": "Cart totals",
        "prNumber": 3,
        "prSha": "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678",
        "testRunId": None,
        "reason": "now_ready",
        "reasonMessage": reasons.get(state, "It waits for a slot."),
        "position": None if state in reasons else 3,
        "queueLength": None if state in reasons else 7,
        "eta": None,
        "conclusion": None,
        "recordVersion": "v1",
    }
    return record | differences


LOG = "https://github.com/octo/widgets/actions/runs/1"
HISTORY = "https://queue.example.org/octo/widgets/tests/1"
PAGE = "https://queue.example.org/octo/widgets/main/pull/3"
FAILURES: dict[str, Any] = {
    "text": "It failed in 2 test runs.",
    "checks": [{"name": "unit", "url": LOG, "because": None}],
    "tests": [
        {
            "id": "1",
            "name": "tests/cart.py::test_total",
            "file": "tests/cart.py",
            "line": 12,
            "message": "10.01 != 10.0",
            "trace": ["def test_total():", "    assert 10.01 == 10.0"],
            "knownAs": "new",
            "quarantined": False,
            "newFailureText": False,
            "failsOn": "main",
            "log": LOG,
            "page": HISTORY,
        }
    ],
    "failedTests": 2,
    "excusedTests": 1,
    "incompleteReports": [],
}
"""What failed in the test run of a pull request."""

SKIPPED: dict[str, Any] = {
    "name": "e2e",
    "state": "skipped",
    "text": "e2e was skipped.",
    "place": "test_branch",
    "run": "r1",
    "sha": "a" * 40,
    "url": LOG,
    "reporter": {"kind": "check_run", "app": "15368", "checkRun": "7", "attempt": 2},
    "because": None,
    "tests": [],
    "proof": None,
}
"""A required check that did not run."""

ENDED: dict[str, Any] = {
    "ahead": [],
    "conditions": [],
    "page": PAGE,
    "eta": None,
    "etaUnknownReason": "It left.",
}
"""What differs in the explanation of one that has left the queue."""


def a_step(kind: str = "WAIT", **differences) -> dict:
    """A next step; its call waits, or submits."""
    waits = kind in ("WAIT", "ASK")
    path = "/v1/getNextStep" if waits else "/v1/submitPullRequest"
    call = {
        "command": "headgate next 3 --wait" if waits else "headgate land 3 --no-wait",
        "method": "POST",
        "path": path,
        "body": {"pr": {"number": 3}},
        "tool": "what_now" if waits else "land_pull_request",
        "arguments": {"number": 3},
    }
    step = {
        "prNumber": 3,
        "targetBranch": "main",
        "kind": kind,
        "text": "Wait until a slot is free.",
        "code": "free_slot",
        "whoMustAct": "nobody",
        "person": None,
        "since": None,
        "at": None,
        "pullRequests": [],
        "commit": None,
        "paths": [],
        "conflictsWith": [],
        "failures": None,
        "percent": None,
        "suspects": [],
        "call": None if kind in ("DONE", "DROP", "SUPERSEDED") else call,
        "recordVersion": f"of {kind}",
    }
    return step | differences


def a_condition(code: str, standing: str, text: str) -> dict:
    """A condition of an explanation."""
    return {"code": code, "met": standing != "open", "standing": standing, "text": text}


def an_explanation(state: str = "PENDING", **differences) -> dict:
    """An explanation."""
    explanation = {
        "prNumber": 3,
        "state": state,
        "reason": "now_ready",
        "summary": "In the queue, 3rd of 7.",
        "conditions": [
            a_condition("queue_running", "met", "The queue is running."),
            a_condition("free_slot", "open", "2 of 2 test slots are in use."),
        ],
        "next": {"what": "A test run ends.", "at": None, "pullRequests": [1, 2]},
        "ahead": [1, 2],
        "behind": [],
        "dependsOn": [],
        "requiredStatuses": ["lint", "test"],
        "nextStep": a_step(),
    }
    return explanation | differences


def a_queue(**differences) -> dict:
    """A queue's configuration, cut to what tests look at."""
    queue = {
        "branch": "main",
        "state": "RUNNING",
        "concurrency": 5,
        "directMergeMode": "ALWAYS",
        "version": 1,
        "recordVersion": "3f1c7b640a524b408a35c4bb",
        "holds": [],
        "stateReason": None,
        "effectiveRequiredStatuses": ["test"],
        "requiredStatusesSource": "repo_provider_branch_protection",
        "settingSources": {"concurrency": "API"},
        "links": {"page": "http://x/"},
    }
    return queue | differences


def an_upload(failed: int = 0, excused: int = 0, exit_code: int = 0, **differences) -> dict:
    """An answer to an upload; the excused come last."""
    reason = "ALWAYS_QUARANTINE until 2026-12-12: #991"
    failures = [
        {
            "test_id": f"06cb6db5-f807-5198-b072-{number:012}",
            "name": f"test_{number}",
            "parent": "ui",
            "classname": "TestCart",
            "file_path": "tests/ui/test_cart.py",
            "variant": "",
            "status": "flaky",
            "quarantined": number >= failed - excused,
            "quarantine_reason": reason if number >= failed - excused else None,
            "summary": "AssertionError: 10.0 != 10.01",
        }
        for number in range(failed)
    ]
    counts = {"files": 1, "tests": 412, "distinct": 412, "passed": 412 - failed, "failed": failed}
    answer = {
        "upload_id": "b7e0a3c4-2f0d-4c57-9c53-0a4f3b1f9d11",
        "duplicate": False,
        "dry_run": False,
        "trusted": True,
        "counts": counts | {"skipped": 0, "attempts": 412, "suite_failures": 0},
        "files": [
            {"name": "a.xml", "format": "junit", "status": "accepted", "tests": 412, "error": None}
        ],
        "failures": failures,
        "failures_truncated": False,
        "quarantined_failures": excused,
        "unquarantined_failures": failed - excused,
        "verdict": {"exit_code": exit_code, "passed": exit_code == 0, "message": "…"},
        "warnings": [],
        "html_url": "http://x/uploads/b7e0a3c4",
    }
    return answer | differences
