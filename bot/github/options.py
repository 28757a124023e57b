"""Options of the adapter: addresses, the App's number and keys.

Pure: no environment is read here; `bot/settings.py` does that and calls these functions.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot import forms
from bot.uploader.proxies import Proxies
from service.errors import StartRefused
from service.provider.errors import Gone, GoneKind
from service.vocabulary import RepoRef

PUBLIC_HOST = "github.com"
CLOUD_SUFFIX = ".ghe.com"
SECRET_CHARS_MIN = 32
SECRETS_MAX = 2
KEY_FILE_BYTES_MAX = 64 * 1024
KEYS_MAX = 4
# Text that must be a path; one line of a key's base64 may begin with a slash too, but has 64
# characters of that alphabet alone.
_PATH_LIKE = re.compile(
    r"(?![A-Za-z0-9+/=]{64})(?:(?:~|\.{0,2})/[^\n\0]{1,250}|[^\n\0]{1,250}\.(?:pem|key))"
)
PUBLIC_WRITE_SPACING_MS = 1000
API_VERSIONS = ("2022-11-28", "2026-03-10")
"""Versions of the REST API that work; Enterprise Server has the first one in all its releases."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Roots without a trailing slash: REST, GraphQL, and web with git."""

    api: str
    graphql: str
    web: str

    def of_repository(self, repo: RepoRef) -> str:
        """Return the REST address of a repository. Raises Gone for a name such as `..`."""
        return f"{self.api}/repos/{_path_of(repo)}"

    def git_of(self, repo: RepoRef) -> str:
        """Return the address of a repository for git. Raises Gone for a name such as `..`."""
        return f"{self.web}/{_path_of(repo)}.git"


def _path_of(repo: RepoRef) -> str:
    if {repo.owner, repo.name} & {"", ".", ".."}:
        raise Gone(f'"{repo.slug}" is not a repository.', GoneKind.REPOSITORY)
    return f"{quote(repo.owner, safe='')}/{quote(repo.name, safe='')}"


class BuildMethod(StrEnum):
    """The ways to build test branches (docs/design/git-builds.md 1)."""

    AUTO = "auto"
    GIT = "git"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """The options of mirrors: whether git builds test branches, and where its mirrors are.

    `bytes_max` is the limit of all mirrors together; `environment` is that of the process, of
    which git gets the search path and the certification authorities; `proxies` lead to the host.
    """

    method: BuildMethod
    folder: Path
    bytes_max: int
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxies: Proxies = field(default_factory=Proxies, repr=False)


@dataclass(frozen=True, slots=True)
class GitHubOptions:
    """One GitHub host and our App there. Keys and secrets: the present one first.

    `slug` is the App's name in addresses (`headgate` of `headgate[bot]`); None: asked when it
    is needed. `write_spacing_ms` None: the host's default. `limits`: whether the host limits
    all callers, None: by its name. `mirrors` None: the REST API builds every test branch.
    `proxies` lead to it, if the network has some.
    """

    host: str
    addresses: Addresses
    app_id: str
    private_keys: tuple[RSAPrivateKey, ...] = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(repr=False)
    write_spacing_ms: int | None = None
    slug: str | None = None
    user_agent: str = "headgate"
    limits: bool | None = None
    mirrors: MirrorOptions | None = None
    api_version: str = API_VERSIONS[0]
    proxies: Proxies = field(default_factory=Proxies, repr=False)


def addresses_of(host: str, url: str | None = None) -> Addresses:
    """Return the addresses of a host; `url` overrides the web root and everything below it.

    Raises StartRefused for an address that is not https, unless it is this machine.
    """
    if url is not None:
        root = url.rstrip("/")
        _refuse_unsafe(root)
        return Addresses(f"{root}/api/v3", f"{root}/api/graphql", root)
    name = host.strip().lower()
    if not name or "/" in name or ":" in name or " " in name:
        raise StartRefused(
            f'HEADGATE_GITHUB_HOST: "{host}" is not a host name. Give the name alone, such as '
            "github.com or github.example.com."
        )
    if name == PUBLIC_HOST or name.endswith(CLOUD_SUFFIX):
        return Addresses(f"https://api.{name}", f"https://api.{name}/graphql", f"https://{name}")
    return Addresses(f"https://{name}/api/v3", f"https://{name}/api/graphql", f"https://{name}")


def write_spacing_s(options: GitHubOptions) -> float:
    """Return the seconds between two writes; 0 for Enterprise Server until it throttles once."""
    if options.write_spacing_ms is not None:
        return options.write_spacing_ms / 1000
    return PUBLIC_WRITE_SPACING_MS / 1000 if is_limited(options) else 0.0


def is_limited(options: GitHubOptions) -> bool:
    """Return whether the host limits all callers; Enterprise Server does if an admin says so."""
    return is_run_by_github(options) if options.limits is None else options.limits


def is_run_by_github(options: GitHubOptions) -> bool:
    """Return whether GitHub itself runs the host."""
    return options.host == PUBLIC_HOST or options.host.endswith(CLOUD_SUFFIX)


def parse_private_key(text: str, setting: str = "HEADGATE_GITHUB_PRIVATE_KEY") -> RSAPrivateKey:
    """Return the RSA key that is given as PEM text, as a path, or as base64.

    Reading a key checks it, which takes 0.1 s or more, so the same text is read once.

    Raises StartRefused, whose text names `setting` and never shows more of the value than its
    first four characters.
    """
    pem = _pem_of(text.strip().replace("\\n", "\n"), setting)
    try:
        key = _checked_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as failure:
        raise StartRefused(
            f"{setting}: the PEM private key cannot be read. Download a new key of the App and "
            "paste the whole file."
        ) from failure
    if not isinstance(key, RSAPrivateKey):
        raise StartRefused(f"{setting}: not an RSA key. Use the key GitHub made for the App.")
    return key


@lru_cache(KEYS_MAX)
def _checked_key(pem: str) -> PrivateKeyTypes:
    return load_pem_private_key(pem.encode(), password=None)


def check_webhook_secrets(secrets: Sequence[str]) -> tuple[str, ...]:
    """Return one or two secrets of at least 32 characters each. Raises StartRefused."""
    if not 1 <= len(secrets) <= SECRETS_MAX:
        raise StartRefused(
            "HEADGATE_GITHUB_WEBHOOK_SECRET: missing. Without it deliveries cannot be trusted; "
            "set the webhook secret of the App."
        )
    for secret, suffix in zip(secrets, ("", "_PREVIOUS"), strict=False):
        if len(secret) < SECRET_CHARS_MIN:
            raise StartRefused(
                f"HEADGATE_GITHUB_WEBHOOK_SECRET{suffix}: {len(secret)} characters long, at "
                f"least {SECRET_CHARS_MIN} are needed. Set a longer one here and in the App."
            )
    return tuple(secrets)


def _refuse_unsafe(root: str) -> None:
    parts = urlsplit(root)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise StartRefused(
            f'HEADGATE_GITHUB_URL: "{root}" is not an address. Give the web root, such as '
            "https://github.example.com."
        )
    if parts.username or parts.password:
        raise StartRefused("HEADGATE_GITHUB_URL: must not hold a user name or password.")
    if parts.scheme == "http" and not forms.is_loopback(parts.hostname):
        raise StartRefused(
            f'HEADGATE_GITHUB_URL: "{root}" is not https. Plain http is accepted only for this '
            "machine (127.0.0.1, ::1, localhost)."
        )


def _pem_of(text: str, setting: str) -> str:
    if text.startswith("-----BEGIN "):
        return text + "\n"
    decoded = _from_base64(text)
    if decoded is not None:
        return decoded
    found = _from_file(text, setting)
    if found is not None:
        return found
    raise StartRefused(
        f'{setting}: not a PEM private key (starts with "{text[:4]}"). Paste the whole file '
        "including the BEGIN line, or give its path, or its base64."
    )


def _from_base64(text: str) -> str | None:
    try:
        decoded = base64.b64decode("".join(text.split()), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return decoded if decoded.lstrip().startswith("-----BEGIN ") else None


def _from_file(text: str, setting: str) -> str | None:
    is_path = _PATH_LIKE.fullmatch(text) is not None
    if "\n" in text or "\0" in text:
        return None
    try:
        with Path(text).expanduser().open("rb") as file:
            found = file.read(KEY_FILE_BYTES_MAX).decode("ascii", errors="replace")
    except (OSError, ValueError, RuntimeError) as failed:
        if not is_path:
            return None
        why = failed.strerror if isinstance(failed, OSError) else str(failed)
        raise StartRefused(
            f"{setting}: {text} cannot be read ({why}). Give the path of the App's private key."
        ) from None
    if found.lstrip().startswith("-----BEGIN "):
        return found
    if is_path:
        raise StartRefused(f"{setting}: {text} holds no PEM private key. Give the App's own.")
    return None
