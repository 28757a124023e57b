"""Clients that five generators make of the served document merge a pull request, in both cases."""

import asyncio
import json
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.contract import instance as instances
from tests.contract.instance import Instance
from tests.harness.needs import PYTHON_CLIENTS, TYPESCRIPT

SCRIPTS = Path(__file__).parents[1] / "clients"

CONFIGURATION = {
    "post_hooks": [],
    "content_type_overrides": {
        "application/plain-text": "text/plain",
        "text/event-stream": "text/plain",
    },
}
"""The type that the specification gives the text of 401 is one that no generator knows, and no
generator makes streams."""

COMPILER = {
    "compilerOptions": {
        "lib": ["es2022", "dom", "dom.iterable"],
        "module": "nodenext",
        "moduleResolution": "nodenext",
        "skipLibCheck": True,
        "strict": True,
        "target": "es2022",
        "types": [],
    },
    "files": ["main.ts"],
}

HEY_API = {
    "input": "openapi.json",
    "logs": {"file": False},
    "output": {"module": {"extension": ".js"}, "path": "generated"},
}

LOWER = replace(instances.OPTIONS, settings={**instances.RECEIVERS, "api_enum_case": "lower"})


@dataclass(frozen=True)
class Service:
    """A service, and the case of its enums."""

    case: str
    world: Instance

    async def save_document(self, folder: Path) -> None:
        """Write the document that it serves into a folder."""
        async with aiohttp.request("GET", f"{self.world.url}/openapi.json") as answer:
            (folder / "openapi.json").write_bytes(await answer.read())

    async def seen_by(self, folder: Path, *command: str) -> Any:
        """What a client prints that merges a new pull request in a new queue."""
        world, branch = self.world, await self.world.new_branch()
        repo = {"host": world.host, "owner": world.owner, "name": world.repo}
        body = {"repo": repo, "targetBranch": branch, "requiredStatuses": ["unit"]}
        headers = {"x-api-token": world.admin_token}
        url = f"{world.url}/v1/createQueue"
        async with aiohttp.request("POST", url, json=body, headers=headers) as answer:
            assert answer.status == 200
        number = await world.open_pull_request(branch)
        arguments = (world.url, world.admin_token, world.host, branch, str(number))
        return json.loads(await output(folder, *command, *arguments))


@pytest.fixture(scope="module")
def service(request, tmp_path_factory, needs):
    """A service that answers in one of the cases."""
    needs("clients")
    own = request.param == "lower"
    with (
        instances.started(tmp_path_factory.mktemp("lower"), LOWER)
        if own
        else nullcontext(request.getfixturevalue("instance"))
    ) as world:
        if world.world is None:
            pytest.skip("needs an instance of our own: unset HEADGATE_CONTRACT_URL")
        yield Service(request.param, world)


async def output(folder: Path, *command: str) -> str:
    """What a program prints; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{PYTHON_CLIENTS}{os.pathsep}{folder}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, (out + errors).decode()[-4000:]
    return out.decode() + errors.decode()


ENDED = ("MERGED", "FAILED", "CANCELLED")


def expected(case: str) -> dict[str, Any]:
    """What a client sees of a pull request that lands."""
    words = {"queue": "RUNNING", "state": "MERGED"}
    return {
        **{name: word.lower() if case == "lower" else word for name, word in words.items()},
        "result": "created",
        "landed": True,
        "refused": [404, "never_submitted", True],
        "unknown": "Missing or unknown x-api-token",
    }


@pytest.mark.parametrize(
    "service", ["lower", pytest.param("spec", marks=pytest.mark.soak)], indirect=True
)
async def test_a_python_client_merges_and_reads_refusals(service, tmp_path):
    await service.save_document(tmp_path)
    (tmp_path / "configuration.json").write_text(json.dumps(CONFIGURATION))
    said = await output(
        tmp_path,
        *(sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json"),
        *("--output-path", "headgate_client", "--meta", "none"),
        *("--config", "configuration.json"),
    )
    assert "warning" not in said.lower(), said
    script = str(SCRIPTS / "merge.py")
    assert await service.seen_by(tmp_path, sys.executable, script) == expected(service.case)


@pytest.mark.parametrize(
    "service", ["spec", pytest.param("lower", marks=pytest.mark.soak)], indirect=True
)
async def test_a_java_made_python_client_merges_and_reads_refusals(service, tmp_path, needs):
    needs("java")
    await service.save_document(tmp_path)
    jar = PYTHON_CLIENTS / "openapi_generator_cli" / "openapi-generator.jar"
    only = (
        "apis,models,supportingFiles,apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"
    )
    await output(
        tmp_path,
        *("java", "-jar", str(jar), "generate", "--generator-name", "python"),
        *("--input-spec", "openapi.json", "--output", ".", "--package-name", "headgate_generated"),
        *("--global-property", only),
    )
    script = str(SCRIPTS / "merge_openapi_generator.py")
    assert await service.seen_by(tmp_path, sys.executable, script) == expected(service.case)


@pytest.mark.parametrize(
    ("script", "generator"),
    [
        ("merge", ("openapi-typescript/bin/cli.js", "openapi.json", "--output", "api.d.ts")),
        ("merge_hey_api", ("@hey-api/openapi-ts/bin/run.js", "--file", "hey-api.json")),
        ("merge_oazapfts", ("oazapfts/dist/cli.js", "openapi.json", "generated.ts")),
    ],
)
@pytest.mark.parametrize(
    "service", ["spec", pytest.param("lower", marks=pytest.mark.soak)], indirect=True
)
async def test_a_typescript_client_merges_and_reads_refusals(service, tmp_path, script, generator):
    await service.save_document(tmp_path)
    (tmp_path / "node_modules").symlink_to(TYPESCRIPT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(COMPILER))
    (tmp_path / "hey-api.json").write_text(json.dumps(HEY_API))
    (tmp_path / "main.ts").write_text((SCRIPTS / f"{script}.ts").read_text())
    words = [word.lower() if service.case == "lower" else word for word in ENDED]
    lines = [f'export const {name} = "{word}";' for name, word in zip(ENDED, words, strict=True)]
    (tmp_path / "words.ts").write_text("\n".join(lines))
    program, *arguments = generator
    await output(tmp_path, "node", str(TYPESCRIPT / program), *arguments)
    await output(tmp_path, "node", str(TYPESCRIPT / "typescript" / "bin" / "tsc"))
    assert await service.seen_by(tmp_path, "node", "main.js") == expected(service.case)
