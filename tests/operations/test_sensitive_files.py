"""Sensitive files of a fork's pull request: those of the head and base that a consent names."""

from dataclasses import replace

import pytest

from service.mergequeue.operations.consents import UNKNOWN_FILES, sensitive_files
from service.provenance import ProviderTime
from service.provider.values import ChangedFiles, PullRequest
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef
from tests.harness.values import ValuesProvider, sha_of


class Retargeted(ValuesProvider):
    """A provider that lists files without saying of which base, while the base changes."""

    base: str | None = None
    returns = False

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        return ChangedFiles(("a.txt",), True, head=sha_of("head", number), base=self.base)

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        found = await super().pull_request(repo, number)
        return replace(found, base_changed_at=ProviderTime(self.now)) if self.returns else found


@pytest.fixture
def provider() -> Retargeted:
    return Retargeted()


@pytest.mark.parametrize("base", ["dev", "main", None])
@pytest.mark.parametrize("returns", [False, True])
async def test_files_of_another_base_name_no_sensitive_files(
    runtime: Runtime, queue: QueueRef, provider: Retargeted, base: str | None, returns: bool
) -> None:
    pull = await provider.pull_request(queue.repo, 9)
    provider.base, provider.returns = base, returns
    found = await sensitive_files(runtime, queue.repo, pull, ("Jenkinsfile",))
    is_known = base == "main" or (base is None and not returns)
    assert found == (() if is_known else UNKNOWN_FILES)


async def test_the_newest_force_push_is_told_with_its_head(stage):
    number, first = await stage.open({"a.txt": "a\n"})
    await stage.act("push", number=number, files={"b.txt": "b\n"})
    assert (await stage.provider.pull_request(stage.repo, number)).force_push is None
    await stage.act("force_push", number=number, to=first)
    found = await stage.provider.pull_request(stage.repo, number)
    assert found.force_push is not None
    assert (found.force_push.to, found.head_sha) == (first, first)
    await stage.act("push", number=number, files={"c.txt": "c\n"})
    found = await stage.provider.pull_request(stage.repo, number)
    assert found.force_push is not None
    assert found.returned_after == found.force_push.at
