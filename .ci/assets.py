"""Third-party files that tests use but that are never committed: fetched, compared, put in place.

A lock names npm packages, exact versions, the files wanted and their digests. What already
lies in place with the right digest is kept. Without npm or network one line says so and the
exit code is 0: everything works without these files, and the tests that need them say so.
The standard library alone, Python 3.11; must not import anything of ours.

    python .ci/assets.py            fetch what is missing
    python .ci/assets.py --update   newest versions, new digests, locks rewritten
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LOCK = "tests/contract/published.lock.json"
HOME = ".cache"

# Each with all that it imports, as its package-lock.json has it: a client of GitHub, what makes a
# TypeScript client of our OpenAPI document, and the test runners that our plug-ins are for.
LOCKED = {
    "tests/contract/octokit": ".cache/octokit",
    "tests/contract/clients": ".cache/clients",
    "tests/plugins/oldest": ".cache/runners-oldest",
    "tests/plugins/newest": ".cache/runners-newest",
}

# Python packages that are started and never imported: what makes a Python client of our document,
# whose versions do not fit beside ours, what reads the files of deploy/, and the versions of pytest
# with which its plug-in is tested.
REQUIREMENTS = {
    "tests/contract/clients/requirements.txt": ".cache/clients-python",
    "requirements/deploy.txt": ".cache/deploy",
    "tests/cli/runners/pytest-oldest.txt": ".cache/pytest-oldest",
    "tests/cli/runners/pytest-newest.txt": ".cache/pytest-newest",
}

# The largest package wanted has 28 MiB; a machine without network is told so in a minute.
PACK_TIMEOUT_S = 300
NPM_SETTINGS = {
    "npm_config_fetch_retries": "1",
    "npm_config_fetch_retry_maxtimeout": "5000",
    "npm_config_fetch_retry_mintimeout": "1000",
    "npm_config_fetch_timeout": "60000",
    "npm_config_loglevel": "error",
    "npm_config_update_notifier": "false",
}


@dataclass(frozen=True, slots=True)
class Package:
    """One npm package of a lock: path inside the package to digest."""

    name: str
    version: str
    files: dict[str, str]

    @property
    def folder(self) -> str:
        """Its folder's name, npm's own spelling of a tarball: `octokit-openapi-23.0.2`."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}"


class Unfetchable(Exception):
    """The world does not give the file now: no npm, no network, an unknown version."""


class WrongDigest(Exception):
    """The file came, but it is not the one that the lock means."""


def main(arguments: list[str]) -> int:
    """Bring every folder up to date; 0 also when nothing can be fetched."""
    try:
        if "--update" in arguments:
            write_lock(ROOT / LOCK, [newest(package) for package in read_lock(ROOT / LOCK)])
        for package in read_lock(ROOT / LOCK):
            bring(package, ROOT / HOME)
        for folder, home in LOCKED.items():
            bring_locked(ROOT / folder, ROOT / home)
        for file, home in REQUIREMENTS.items():
            bring_required(ROOT / file, ROOT / home)
    except Unfetchable as reason:
        print(f"assets: {reason}; tests that need them are skipped, all else works")
        return 0
    except WrongDigest as reason:
        print(f"assets: {reason}", file=sys.stderr)
        return 1
    return 0


def bring_locked(locked: Path, home: Path) -> None:
    """Install what a folder locks into `home`; a second call does nothing."""
    lock = (locked / "package-lock.json").read_text("utf-8")
    done = home / "installed.json"
    if done.is_file() and done.read_text("utf-8") == lock:
        return
    wanted = json.loads((locked / "package.json").read_text("utf-8")).get("dependencies", {})
    print(f"assets: fetching {', '.join(wanted)}")
    home.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(locked / name, home / name)
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=home)
    done.write_text(lock, "utf-8")


def bring_required(requirements: Path, home: Path) -> None:
    """Install the packages of a requirements file into `home`; a second call does nothing."""
    wanted = requirements.read_text("utf-8")
    done = home / "installed.txt"
    if done.is_file() and done.read_text("utf-8") == wanted:
        return
    print(f"assets: fetching the packages of {requirements.relative_to(ROOT)}")
    shutil.rmtree(home, ignore_errors=True)
    try:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet"),
                *("--disable-pip-version-check", "--no-compile", "--target", str(home)),
                *("--requirement", str(requirements)),
            ],
            capture_output=True,
            text=True,
            timeout=PACK_TIMEOUT_S,
            check=True,
        )
    except subprocess.TimeoutExpired as late:
        raise Unfetchable(f"pip took longer than {PACK_TIMEOUT_S} s") from late
    except subprocess.CalledProcessError as failed:
        said = (failed.stderr.strip() or "no reason given").splitlines()[-1]
        raise Unfetchable(f"pip failed ({said})") from failed
    done.write_text(wanted, "utf-8")


def bring(package: Package, target: Path) -> None:
    """Put the package's files under `target`, all of them or none; a second call does nothing."""
    home = target / package.folder
    if all(digest_of(home / path) == digest for path, digest in package.files.items()):
        return
    print(f"assets: fetching {package.name} {package.version}")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        unpacked = unpack(package, Path(scratch))
        for path, digest in package.files.items():
            found = digest_of(unpacked / path)
            if found != digest:
                raise WrongDigest(
                    f"{package.name} {package.version}: {path} has {found or 'not come'}, "
                    f"the lock wants {digest}"
                )
        shutil.rmtree(home, ignore_errors=True)
        os.replace(unpacked, home)


def unpack(package: Package, scratch: Path) -> Path:
    """The folder under `scratch` that holds the wanted files of the freshly packed package."""
    npm("pack", f"{package.name}@{package.version}", cwd=scratch)
    unpacked = scratch / "unpacked"
    unpacked.mkdir()
    with tarfile.open(next(scratch.glob("*.tgz"))) as archive:
        for path in package.files:
            # Only members asked for by name are read, so no archive can write elsewhere.
            try:
                source = archive.extractfile(f"package/{path}")
            except KeyError:
                source = None
            if source is not None:
                (unpacked / path).parent.mkdir(parents=True, exist_ok=True)
                (unpacked / path).write_bytes(source.read())
    return unpacked


def newest(package: Package) -> Package:
    """The same files of the newest version, with the digests they have there."""
    version = npm("view", package.name, "version", cwd=ROOT).strip()
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = unpack(replace(package, version=version), Path(scratch))
        digests = {path: digest_of(unpacked / path) for path in package.files}
    gone = [path for path, digest in digests.items() if digest is None]
    if gone:
        raise WrongDigest(f"{package.name} {version} no longer has {', '.join(gone)}")
    return Package(package.name, version, {path: str(digest) for path, digest in digests.items()})


def npm(*arguments: str, cwd: Path) -> str:
    """What npm prints; Unfetchable when it is missing, fails or takes too long."""
    if shutil.which("npm") is None:
        raise Unfetchable("npm is not on PATH")
    try:
        done = subprocess.run(
            ["npm", *arguments],
            cwd=cwd,
            env={**os.environ, **NPM_SETTINGS},
            capture_output=True,
            text=True,
            timeout=PACK_TIMEOUT_S,
            check=True,
        )
    except subprocess.TimeoutExpired as late:
        raise Unfetchable(f"npm {arguments[0]} took longer than {PACK_TIMEOUT_S} s") from late
    except subprocess.CalledProcessError as failed:
        said = (failed.stderr.strip() or "no reason given").splitlines()[0]
        raise Unfetchable(f"npm {arguments[0]} failed ({said})") from failed
    return done.stdout


def digest_of(path: Path) -> str | None:
    """SHA-384 as a browser wants it, `sha384-…` in base64; None when there is no such file."""
    if not path.is_file():
        return None
    return "sha384-" + base64.b64encode(hashlib.sha384(path.read_bytes()).digest()).decode()


def read_lock(path: Path) -> list[Package]:
    """The packages of a lock, in its order."""
    return [Package(**entry) for entry in json.loads(path.read_text("utf-8"))]


def write_lock(path: Path, packages: list[Package]) -> None:
    """Replace the lock; the order and the files wanted stay."""
    entries = [{"name": p.name, "version": p.version, "files": p.files} for p in packages]
    path.write_text(json.dumps(entries, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
