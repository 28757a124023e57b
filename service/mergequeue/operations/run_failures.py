"""The tests that failed in a test run, which the package `evidence` looks up."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from service.database.database import Tx
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.model import Run
from service.mergequeue.operations.views import FailedTest
from service.mergequeue.wording.failed_tests import FailedTests, KilledRunner
from service.provenance import Proof
from service.runtime import Runtime
from service.vocabulary import QueueRef, Sha


@dataclass(frozen=True, slots=True)
class RunFailures:
    """`named_in` returns them as texts on pull requests name them, `listed_in` as the API does.

    `named_on` returns those that failed on the head of a pull request itself.
    `names_of` returns the names of tests by their ids; an unknown id is left out.
    `changed_since` returns what results that were sent since a run passed take back: passes and
    excuses. It raises the provider's errors, and so does `explained_by_now`, which returns whether
    what is known today explains each failed check of a run. `excuse_proof` returns what must prove
    a report that excuses a failed check of the repository. `are_known_flaky` returns whether tests
    failed on a commit of a branch, and all of them are known as flaky. `killed_in` returns the test
    runners that were killed in the jobs of a run.
    """

    named_in: Callable[[Tx, Runtime, QueueRef, Run], FailedTests]
    named_on: Callable[[Tx, Runtime, QueueRef, int, Sha], FailedTests]
    listed_in: Callable[[Tx, QueueRef, Run], tuple[FailedTest, ...]]
    names_of: Callable[[Tx, QueueRef, Collection[str]], Mapping[str, str]]
    changed_since: Callable[[Runtime, QueueRef, Run], Awaitable[Sequence[Input]]]
    explained_by_now: Callable[[Runtime, QueueRef, Run], Awaitable[bool]]
    excuse_proof: Callable[[Tx, int], Proof]
    are_known_flaky: Callable[[Tx, int, Sha], bool]
    killed_in: Callable[[Tx, QueueRef, Run], tuple[KilledRunner, ...]]
