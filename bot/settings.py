"""The settings of an operator: `HEADGATE_*` from the environment and `.env`, parsed once.

After `read` nobody looks at the environment again. Each refusal is a `StartRefused` that
names its variable and never repeats a secret. What the provider makes of its own settings
(keys, addresses of its API) is not known here.
"""

import difflib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from bot import forms
from bot.program import SERVICE_PORT
from service import crash_points
from service.errors import StartRefused
from service.limits import Rate
from service.runtime import Compatibility, DashboardAuth, EnumCase, Rates
from service.vocabulary import Network

PREFIX = "HEADGATE_"
DOTENV = ".env"
APP_FILE = "github-app.env"
"""In the data directory: the credentials of the App that was registered by `/setup`."""

# Names of clients and tests, which a server may find in its environment.
KNOWN_ELSEWHERE = frozenset(
    {
        "CHROMIUM",
        "CONTRACT_TOKEN",
        "CONTRACT_URL",
        "LIVE",
        "OIDC_TOKEN",
        "REQUIRE_ALL",
        "SHARED_DATA",
        "SIM_SEEDS",
        "SUSPECTS",
        "TEST_POSTGRES_URL",
        "TOKEN",
        "URL",
    }
)

# Added to each pod for every Service in its namespace, as HEADGATE_SERVICE_HOST for `headgate`.
KUBERNETES_NAME = re.compile(
    rf"({PREFIX}(?:\w+_)?)(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)=.*"
)
KUBERNETES_PORT = re.compile(rf"({PREFIX}(?:\w+_)?)PORT=(?:tcp|udp|sctp)://.+")
Text = TypeVar("Text", bound=str | None)

# Base64 of 32 bytes without its padding has so many characters.
SECRET_KEY_LENGTH_MIN = 43
# Readable by the group at most (docs/design/security.md 7).
SECRET_FILE_MODE_MAX = 0o640
# PATH_MAX of Linux.
PATH_LENGTH_MAX = 4096


class Strike(StrEnum):
    """The ways in which a crash test strikes at its crash point."""

    KILL = "kill"
    STOP = "stop"
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class FaultBoundary:
    """Strike when the crash point `name` is passed for the `nth` time, counted from 1."""

    name: str
    nth: int
    strike: Strike


def _parse_database_url(value: SecretStr) -> SecretStr:
    """Return the address as given; SQLite and PostgreSQL alone are supported."""
    address = value.get_secret_value()
    if address and not address.startswith(("sqlite:///", "postgresql://")):
        raise ValueError("must begin with sqlite:/// or postgresql://")
    return value


def parse_root_url(value: str) -> str:
    """Return an http(s) address without a trailing slash."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http or https address, as https://queue.example.org")
    if parts.query or parts.fragment or parts.username:
        raise ValueError("must have no user, query or fragment")
    return value.rstrip("/")


def parse_issuer(value: str) -> str:
    """Return the address of an issuer: https, unless it is on this machine."""
    root = parse_root_url(value)
    parts = urlsplit(root)
    if parts.scheme != "https" and not forms.is_loopback(parts.hostname or ""):
        raise ValueError("must be an https address")
    return root


def _parse_secret_key(value: SecretStr) -> SecretStr:
    """Return a key that is long enough to be 32 random bytes as text."""
    if len(value.get_secret_value()) < SECRET_KEY_LENGTH_MIN:
        raise ValueError(
            f"must have at least {SECRET_KEY_LENGTH_MIN} characters; make one with "
            "`openssl rand -base64 32`"
        )
    return value


def _refuse_open_key(value: SecretStr) -> SecretStr:
    """Return a key, or its path if others cannot read the file."""
    text = value.get_secret_value()
    if "\n" not in text and len(text) <= PATH_LENGTH_MAX and Path(text).is_file():
        _refuse_open_file(Path(text))
    return value


def _refuse_open_file(path: Path) -> None:
    """Raise ValueError for a file of a secret that more than its group may read."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & ~SECRET_FILE_MODE_MAX:
        raise ValueError(f"{path} has mode {mode:04o}; others may read it. chmod 600 {path}")


def _parse_fault_boundary(value: object) -> object:
    """Parse `name:n:kill|stop|raise`."""
    if not isinstance(value, str):
        return value
    name, _, rest = value.partition(":")
    nth, _, strike = rest.partition(":")
    if name not in crash_points.NAMES:
        raise ValueError(f"{name} is no boundary{did_you_mean(name, crash_points.NAMES)}")
    if not nth.isdigit() or int(nth) < 1 or strike not in set(Strike):
        raise ValueError("must be NAME:N:kill, NAME:N:stop or NAME:N:raise, N from 1")
    return FaultBoundary(name, int(nth), Strike(strike))


def _parse_dashboard_auth(value: object) -> object:
    """Return the way as given; one that is not built is refused by name."""
    if value == "proxy":
        raise ValueError("is not available; use github, token, loopback or off")
    return value


def stripped(value: object) -> object:
    """Return text without the line end that files and shells add."""
    return value.strip() if isinstance(value, str) else value


Period = Annotated[float, Field(ge=1, le=3600)]
Secret = Annotated[SecretStr, BeforeValidator(stripped)]
SecretKey = Annotated[Secret, AfterValidator(_parse_secret_key)]
KeyText = Annotated[Secret, AfterValidator(_refuse_open_key)]
RateForm = Annotated[Rate | None, NoDecode, BeforeValidator(forms.parse_rate)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(forms.parse_networks)]
Admins = Annotated[frozenset[str], NoDecode, BeforeValidator(forms.parse_accounts)]
Ports = Annotated[frozenset[int], NoDecode, BeforeValidator(forms.parse_ports)]

RATES = Rates()


class Settings(BaseSettings):
    """Every setting, with its default; frozen. `None` and empty mean not set."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=DOTENV, env_ignore_empty=True, frozen=True, extra="ignore"
    )

    database_url: Annotated[Secret, AfterValidator(_parse_database_url)] = SecretStr("")
    database_pool: Annotated[int, Field(ge=1, le=100)] = 10
    data_dir: Path = Path("headgate-data")
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=forms.PORT_MAX)] = SERVICE_PORT
    admin_listen: Annotated[str, AfterValidator(forms.parse_listen)] = "127.0.0.1:9642"
    public_url: Annotated[str, AfterValidator(parse_root_url)] | None = None
    workers: bool = True
    log_format: Literal["auto", "json", "text"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    secret_key: SecretKey | None = None
    secret_key_previous: SecretKey | None = None
    auto_create_queues: bool = True
    fault_boundary: Annotated[FaultBoundary, BeforeValidator(_parse_fault_boundary)] | None = None

    api_rate_read: RateForm = RATES.read
    api_rate_write: RateForm = RATES.write
    api_rate_upload: RateForm = RATES.upload
    api_rate_metrics: RateForm = RATES.metrics
    api_rate_auth_failure: RateForm = RATES.auth_failure
    api_enum_case: EnumCase = EnumCase.SPEC
    api_compatibility: Compatibility = Compatibility.NONE
    trusted_proxies: Networks = ()
    dashboard_auth: Annotated[DashboardAuth, BeforeValidator(_parse_dashboard_auth)] | None = None
    admins: Admins = frozenset()
    traces_url: Annotated[str, AfterValidator(parse_root_url)] | None = None
    security_contact: Annotated[str, AfterValidator(forms.parse_contact)] | None = None
    webhook_ports: Ports = frozenset()
    webhook_allow_networks: Networks = ()

    period_timers_s: Period = 5
    period_readback_s: Period = 10
    period_run_checks_s: Period = 60
    period_queues_s: Period = 60
    period_idle_s: Period = 600
    period_redelivery_s: Period = 600
    period_comments_s: Period = 120
    period_orphans_s: Period = 600
    period_tests_s: Period = 60

    oidc_audience: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    oidc_issuer: Annotated[str, AfterValidator(parse_issuer)] | None = None

    github_host: str = "github.com"
    github_url: str | None = None
    github_app_id: Annotated[str, Field(pattern=r"^[0-9]{1,19}$")] | None = None
    github_private_key: KeyText | None = None
    github_private_key_previous: KeyText | None = None
    github_webhook_secret: Secret | None = None
    github_webhook_secret_previous: Secret | None = None
    github_client_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    github_client_secret: Secret | None = None
    github_write_spacing_ms: Annotated[int, Field(ge=0, le=60_000)] | None = None
    github_limits: bool | None = None
    github_api_version: Literal["2022-11-28", "2026-03-10"] = "2022-11-28"
    build_method: Literal["auto", "git", "rest"] = "auto"
    mirrors_max_gb: Annotated[int, Field(ge=1, le=10_000)] = 20

    @property
    def database_address(self) -> str:
        """The database's address; by default a file in the data directory."""
        given = self.database_url.get_secret_value()
        return given or f"sqlite:///{self.data_dir.absolute() / 'headgate.db'}"

    @property
    def is_sqlite(self) -> bool:
        """Return whether the state is one file on this machine."""
        return self.database_address.startswith("sqlite:")

    @property
    def enum_case(self) -> EnumCase:
        """The case of enums in answers: Trunk's clients read lower case alone."""
        is_trunk = self.api_compatibility is Compatibility.TRUNK
        return EnumCase.LOWER if is_trunk else self.api_enum_case

    @property
    def rates(self) -> Rates:
        """The API's rate limits."""
        return Rates(
            read=self.api_rate_read,
            write=self.api_rate_write,
            upload=self.api_rate_upload,
            metrics=self.api_rate_metrics,
            auth_failure=self.api_rate_auth_failure,
        )

    @property
    def app_file(self) -> Path:
        """Return where the credentials of an App are kept that was registered by `/setup`."""
        return self.data_dir / APP_FILE

    @property
    def has_app(self) -> bool:
        """Return whether the settings name an App; without one, `/setup` registers it."""
        given = (self.github_app_id, self.github_private_key, self.github_webhook_secret)
        return any(one is not None for one in given)

    @property
    def provider_is_loopback(self) -> bool:
        """Return whether the only provider is on this machine."""
        address = self.github_url or f"https://{self.github_host}"
        return forms.is_loopback(urlsplit(address).hostname or "")

    @property
    def is_for_this_machine(self) -> bool:
        """Return whether it listens to this machine alone, and is reached under a name of it."""
        reached = urlsplit(self.public_url or "").hostname or ""
        return forms.is_loopback(self.host) and forms.is_loopback(reached)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by priority: command line, environment, files, `.env`."""
        if isinstance(env_settings, EnvSettingsSource):
            env_settings.env_vars = _without_kubernetes(env_settings.env_vars)
        return init_settings, env_settings, SecretFiles(settings_cls), dotenv_settings


# Settings that hold a secret; each may be a file instead, named by NAME_FILE.
SECRETS = (
    "database_url",
    "secret_key",
    "secret_key_previous",
    "github_private_key",
    "github_private_key_previous",
    "github_webhook_secret",
    "github_webhook_secret_previous",
    "github_client_secret",
)


class SecretFiles(PydanticBaseSettingsSource):
    """Secrets given as a path, as `HEADGATE_SECRET_KEY_FILE`."""

    def __call__(self) -> dict[str, object]:
        """Return the contents of every such file. Raises StartRefused for an unreadable one."""
        environment = environment_of_headgate()
        return {
            name: _secret_in(f"{PREFIX}{name.upper()}_FILE", Path(path))
            for name in SECRETS
            if (path := environment.get(f"{PREFIX}{name.upper()}_FILE"))
        }

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[object, str, bool]:
        """Not used: all fields come from the call."""
        return field, field_name, False


def read(**options: str | int | bool | Path | None) -> Settings:
    """Return the settings of this process; command-line `options` of None are not given.

    Raises StartRefused naming the first wrong variable. Unknown names are refused first: a
    misspelled one is the likeliest reason for another that seems to lack.
    """
    _refuse_unknown(environment_of_headgate())
    chosen = {name: value for name, value in options.items() if value is not None}
    try:
        settings = with_registered_app(Settings.model_validate(chosen))
    except ValidationError as refused:
        raise StartRefused(_first_fault(refused)) from None
    if settings.fault_boundary and not settings.provider_is_loopback:
        raise StartRefused(
            f"{PREFIX}FAULT_BOUNDARY: crash tests run against a provider on this machine alone. "
            f"Unset it, or set {PREFIX}GITHUB_URL to a sandbox's address"
        )
    return settings


def with_registered_app(settings: Settings) -> Settings:
    """Return the settings with the App that was registered by `/setup`, unless they name one.

    Raises StartRefused for a file that others can read, that is not whole, or that is of an App
    on another host than the settings say.
    """
    path = settings.app_file
    if settings.has_app or not path.exists():
        return settings
    try:
        _refuse_open_file(path)
        lines = DotEnvSettingsSource(Settings, env_file=path).env_vars
    except (OSError, ValueError) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else str(failed)
        raise StartRefused(f"{path} cannot be used ({reason})") from None
    names = {name.upper(): value for name, value in lines.items()}
    stored = {
        name: value
        for name in REGISTERED
        if (value := names.get(f"{PREFIX}{name.upper()}")) is not None
    }
    lacking = [f"{PREFIX}{name.upper()}" for name in REGISTERED if name not in stored]
    if lacking:
        raise StartRefused(f"{path} lacks {lacking[0]}. Put the backed-up file back")
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    if given.get("github_host", stored["github_host"]) != stored["github_host"]:
        raise StartRefused(
            f"{PREFIX}GITHUB_HOST is {settings.github_host}, but the App of {path} is registered "
            f"on {stored['github_host']}. Unset it, or move the file away to register another App"
        )
    return type(settings).model_validate(stored | given)


REGISTERED = (
    "github_app_id",
    "github_private_key",
    "github_webhook_secret",
    "github_client_id",
    "github_client_secret",
    "github_host",
    "public_url",
)
"""Settings that the file of a registered App holds."""


class Alone(Settings):
    """Settings from given values, independent of the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the given values as the only source."""
        return (init_settings,)


def alone(**values: str | int | bool | Path | None) -> Settings:
    """Return settings of these values and defaults, independent of the environment."""
    return Alone.model_validate(values)


def environment_of_headgate() -> dict[str, str]:
    """Return all `HEADGATE_*` variables; those of the process override those of `.env`.

    Variables that Kubernetes adds for Services are left out.
    """
    in_file = DotEnvSettingsSource(Settings, env_file=DOTENV).env_vars
    named = {name.upper(): value for name, value in in_file.items() if value is not None}
    named |= _without_kubernetes({name.upper(): value for name, value in os.environ.items()})
    return {name: value for name, value in named.items() if name.startswith(PREFIX)}


def _without_kubernetes(named: Mapping[str, Text]) -> dict[str, Text]:
    """Leave out the variables that Kubernetes adds for a Service.

    It adds all of them, so one without the Service's host and port is a person's mistake.
    """
    names = {name.upper() for name in named}

    def is_added(name: str, value: str | None) -> bool:
        text = f"{name.upper()}={value}"
        found = filter(None, (KUBERNETES_NAME.fullmatch(text), KUBERNETES_PORT.fullmatch(text)))
        return any({f"{of[1]}SERVICE_HOST", f"{of[1]}SERVICE_PORT"} <= names for of in found)

    return {name: value for name, value in named.items() if not is_added(name, value)}


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    """Raise StartRefused for the first variable that is neither a setting nor known elsewhere."""
    settings = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    settings |= {f"{PREFIX}{name.upper()}_FILE" for name in SECRETS}
    elsewhere = {f"{PREFIX}{name}" for name in KNOWN_ELSEWHERE}
    for name in sorted(environment):
        if name not in settings | elsewhere:
            near = did_you_mean(name, settings, len(PREFIX))
            raise StartRefused(f"{name} is not a setting{near}")
    for name in SECRETS:
        variable = f"{PREFIX}{name.upper()}"
        if environment.get(variable) and environment.get(f"{variable}_FILE"):
            raise StartRefused(f"{variable} and {variable}_FILE are both set. Keep one of them")


def did_you_mean(name: str, known: Iterable[str], prefix_length: int = 0) -> str:
    """Return `; did you mean X?`, or what to do if no name is similar.

    The names have a prefix of this length in common, which makes none of them similar.
    """
    by_rest = {each[prefix_length:]: each for each in sorted(known)}
    near = difflib.get_close_matches(name[prefix_length:], by_rest, n=1)
    return f"; did you mean {by_rest[near[0]]}?" if near else ". Unset it"


def _secret_in(variable: str, path: Path) -> str:
    """Return the text of a secret's file, without its last line end."""
    try:
        _refuse_open_file(path)
        return path.read_text("utf-8").strip()
    except (OSError, ValueError) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else str(failed)
        raise StartRefused(f"{variable}: {path} cannot be used ({reason})") from None


def _first_fault(refused: ValidationError) -> str:
    """Return the first wrong setting: its variable, its value unless secret, what it must be."""
    fault = refused.errors(include_url=False, include_context=False)[0]
    name = str(fault["loc"][0])
    message = fault["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    value = fault["input"]
    shown = "" if name in SECRETS or not isinstance(value, str) else f' (is "{value[:100]}")'
    return f"{PREFIX}{name.upper()}: {message}{shown}"
