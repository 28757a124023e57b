"""A repository whose CI uploads results, over either database."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from service.accounts import access, tokens
from service.accounts.store import access as stored_access
from service.accounts.tenants import RepositoryRecord
from service.accounts.tokens import TokenRequest
from service.database.database import Store, Tx
from service.http.callers import Caller
from service.provider.values import Repository
from service.runtime import Options, Runtime
from service.testhealth.operations import ingest
from service.testhealth.operations.upload_values import UploadAnswer, UploadMeta
from service.testhealth.reports.results import (
    Attempt,
    CaseResult,
    FileStatus,
    Format,
    Outcome,
    ReportFile,
)
from service.testhealth.store import cases as test_cases
from service.testhealth.store import listings
from service.testhealth.store import states as test_states
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.states import CaseState, StateChange
from service.vocabulary import SYSTEM, MergeMethod, RepoId, RepoRef, Role, Sha
from tests.harness.databases import SetClock
from tests.harness.runtimes import a_runtime

HOST = "github.test"
NOW = datetime(2026, 3, 22, tzinfo=UTC)
LETTERS = {"P": Outcome.PASSED, "F": Outcome.FAILED, "S": Outcome.SKIPPED}
MESSAGE = "AssertionError: 10.0 != 10.01"


@dataclass
class Stage:
    """A repository, and a token with which its CI uploads."""

    runtime: Runtime
    clock: SetClock
    repository: RepositoryRecord
    caller: Caller

    async def send(self, files: Iterable[ReportFile], **meta: Any) -> UploadAnswer:
        """Upload these files; what is not said is the same every time."""
        told = {"sha": Sha("a" * 40), "job": "unit", **meta}
        caller = told.pop("caller", self.caller)
        return await ingest.ingest_upload(
            self.runtime, caller, self.repository, UploadMeta(**told), tuple(files)
        )

    async def ran(self, tests: Mapping[str, str], **meta: Any) -> UploadAnswer:
        """Upload one file: name of each test → its attempts as letters."""
        return await self.send([a_file(tests)], **meta)

    async def case(self, name: str) -> ListedCase:
        """The test of this name, as it is stored."""
        return (await self.cases())[name]

    async def cases(self) -> dict[str, ListedCase]:
        """Known tests by name."""
        return await self.runtime.store.read(_cases, self.repository.id)

    async def states(self) -> dict[str, tuple[CaseState, tuple[StateChange, ...]]]:
        """How judged tests are, and how they became so, by name."""
        return await self.runtime.store.read(_states, self.repository.id)


def a_file(tests: Mapping[str, str], name: str = "junit.xml", **facts: Any) -> ReportFile:
    """A report of tests: name → attempts."""
    cases = tuple(a_case(each, letters) for each, letters in tests.items() if letters)
    report = ReportFile(Format.JUNIT, FileStatus.ACCEPTED, cases)
    content = repr((name, sorted(tests.items()), sorted(facts.items(), key=str)))
    digest = hashlib.sha256(content.encode()).hexdigest()
    return replace(report, name=name, sha256=digest, **facts)


def a_case(name: str, letters: str, **facts: Any) -> CaseResult:
    """A case with these attempts."""
    told = tuple(Attempt(LETTERS[each], 0.5, MESSAGE if each == "F" else "") for each in letters)
    case = CaseResult(name, "Cart", "ui", f"tests/{name}.py", explicit_attempts=told)
    return case._replace(**facts)


async def staged(store: Store, name: str = "widgets", at: datetime = NOW) -> Stage:
    """A repository of this name; its token vouches for branches, as it knows no provider."""
    clock = SetClock(at)
    runtime = a_runtime(
        store, clock, options=Options(version="0.0.7", public_url="https://queue.example.org")
    )
    repository = await store.run(_repository, name)
    wish = TokenRequest(HOST, "octo", f"ci of {name}", Role.QUEUE)
    secret = (await tokens.create_token(runtime, wish, SYSTEM)).secret
    caller = await access.look_up(runtime, secret)
    return Stage(runtime, clock, repository, caller)


async def created_anew(stage: Stage) -> Stage:
    """Delete the repository, and create another one of its name."""
    name = stage.repository.ref.name
    anew = await stage.runtime.store.run(_repository, name, "another id")
    return replace(stage, repository=anew)


def _repository(session: Tx, name: str, provider_id: str = "") -> RepositoryRecord:
    org = stored_access.ensure_organization(session, HOST, "7", "octo")
    seen = Repository(
        ref=RepoRef(HOST, "octo", name),
        id=RepoId(HOST, provider_id or f"id of {name}"),
        owner_id="7",
        default_branch="main",
        merge_methods=frozenset(MergeMethod),
        archived=False,
        url=f"https://{HOST}/octo/{name}",
    )
    return stored_access.upsert_repository(session, org.id, seen)


def _cases(session: Tx, repository_id: int) -> dict[str, ListedCase]:
    table = test_cases.cases
    ids = session.execute(
        select(table.c.id).where(table.c.repository_id == repository_id)
    ).scalars()
    nos = sorted(test_cases.by_ids(session, repository_id, ids).values())
    return {each.name: each for each in listings.listed_cases(session, repository_id, nos)}


def _states(
    session: Tx, repository_id: int
) -> dict[str, tuple[CaseState, tuple[StateChange, ...]]]:
    names = {case.no: name for name, case in _cases(session, repository_id).items()}
    histories = test_states.histories_of(session, repository_id, names)
    found = test_states.states_of(session, repository_id, names)
    return {names[no]: (state, histories.get(no, ())) for no, state in found.items()}
