"""Requests for pages, forms that pages of ours have sent, and the actions that they ask for."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from aiohttp import web

from service.accounts import page_addresses
from service.accounts.tenants import Organization
from service.dashboard.visitors import Visitor
from service.errors import Malformed, NotAllowed, NotFound
from service.http.callers import Caller
from service.http.models import common
from service.http.models.common import Request
from service.provider.values import AccessLevel
from service.runtime import Options, Runtime
from service.testhealth.operations.records import RepositoryAddresses
from service.vocabulary import Role

ID_DIGITS_MAX = 15
"""Digits of a number that is looked up."""

Form = TypeVar("Form", bound=Request)

_FORM_BYTES_MAX = 64 * 1024
_FIELDS_MAX = 200
_ARRIVES_WITHIN_S = 15.0
TAG = "form_tag"
"""The secret field, which every form has."""


class Foreign(NotAllowed):
    """No page of ours has sent this form to this visitor."""

    def __init__(self) -> None:
        super().__init__(
            "The form was not sent from this page. Reload the page, and send the form again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request for a page, at a time: the names in its path, and its query.

    `form` has the fields of a form that was sent; without one it is empty.
    """

    visitor: Visitor
    names: Mapping[str, str]
    query: Mapping[str, str]
    now: datetime
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The number of a pull request in the path. Raises NotFound for a text that is none."""
        text = self.names["number"]
        if not text.isdecimal() or len(text) > ID_DIGITS_MAX:
            raise NotFound("There is no such page.")
        return int(text)

    @property
    def id(self) -> str:
        """The id in the path as it is stored. Raises NotFound for a text that is no id."""
        try:
            return str(UUID(self.names["id"]))
        except ValueError:
            raise NotFound("There is no such page.") from None

    def text(self, name: str) -> str:
        """Return a field of the form without blanks around it, empty if it was not sent."""
        return self.form.get(name, "").strip()

    def read(self, model: type[Form]) -> Form:
        """Return the form by its model. Raises Malformed, which names wrong fields.

        Fields that serve the page itself are no part of the model.
        """
        names = [field.alias or name for name, field in model.model_fields.items()]
        return common.read(model, {name: self.text(name) for name in names if name in self.form})


class Owner(NamedTuple):
    """The organization of a page, and the page's repository or organization by name."""

    org_id: int
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest(Visit):
    """A request for a page of a repository."""

    where: RepositoryAddresses

    @property
    def owner(self) -> Owner:
        """Return the owner that denials are audited with."""
        repository = self.where.repository
        return Owner(repository.org_id, f"{repository.ref.host}/{repository.ref.slug}")

    def frame(self) -> Mapping[str, object]:
        """Return the values of the template that belong to every page of a repository."""
        repository = self.where.repository
        home = page_addresses.home(self.where.options, repository.ref)
        return {"home": home, "repository": repository}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationRequest(Visit):
    """A request for a page of an organization, by a person or token that administers it."""

    organization: Organization

    @property
    def owner(self) -> Owner:
        """Return the owner that denials are audited with."""
        return Owner(self.organization.id, f"{self.organization.host}/{self.organization.slug}")

    @property
    def caller(self) -> Caller:
        """The visitor as operations of the organization take them: with role admin."""
        if self.visitor.caller is not None:
            return replace(self.visitor.caller, visitor=self.visitor.actor)
        org, actor = self.organization, self.visitor.actor
        return Caller("", actor.login, org.id, org.slug, org.host, Role.ADMIN, None, None, actor)

    def frame(self) -> Mapping[str, object]:
        """Return the values of the template that belong to every page of an organization."""
        return {"organization": self.organization, "at": f"/settings/{self.organization.slug}"}


class Version(NamedTuple):
    """A number that changes with every change of a thing, and the topic that its changes wake.

    Without a topic a stream looks for changes by itself.
    """

    number: int | str
    topic: str = ""


AnyVisit = TypeVar("AnyVisit", PageRequest, OrganizationRequest)

Outcome = str | Mapping[str, object] | None
"""After an action: the path of the next page, values of the page of the form, or None for that
page as it is now."""


@dataclass(frozen=True, slots=True)
class Action(Generic[AnyVisit]):
    """A change that a form of a page asks for, as the field `action` names it.

    `needs` is the access that it takes. `question` and `button` are for a page that asks first;
    without a question it is done at once. `{name}` in a question is a field of the form, or a name
    in the path. What `act` raises is shown on the page of the form.
    """

    needs: AccessLevel
    act: Callable[[Runtime, AnyVisit], Awaitable[Outcome]]
    question: str = ""
    button: str = ""


@dataclass(frozen=True, slots=True)
class PageKind(Generic[AnyVisit]):
    """A page of a repository or an organization.

    `read` raises NotFound for a thing that does not exist, and so does `version`, which costs less
    and changes whenever the page does. None: the page does not follow changes by itself.
    """

    path: str
    template: str
    read: Callable[[Runtime, AnyVisit], Awaitable[object]]
    version: Callable[[Runtime, AnyVisit], Awaitable[Version]] | None = None
    actions: Mapping[str, Action[AnyVisit]] = field(default_factory=dict)


async def read(request: web.Request, visitor: Visitor, options: Options) -> Mapping[str, str]:
    """Return the fields of a form, the last of each name.

    Raises Foreign for one that no page of ours has sent to this visitor, Malformed for a body
    that is no form.
    """
    _check_origin(request, options)
    length = request.content_length
    is_form = request.content_type == "application/x-www-form-urlencoded"
    if not is_form or length is None or length > _FORM_BYTES_MAX:
        raise Malformed(f"Send a form of at most {_FORM_BYTES_MAX} bytes.")
    try:
        async with asyncio.timeout(_ARRIVES_WITHIN_S):
            text = (await request.read()).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except (ValueError, TimeoutError) as wrong:
        raise Malformed("The form cannot be read. Send it again.") from wrong
    fields = dict(pairs)
    if not hmac.compare_digest(fields.pop(TAG, "").encode(), visitor.form_tag.encode()):
        raise Foreign
    return fields


def faults_of(wrong: Malformed) -> str:
    """Return what is wrong with the fields, by their names instead of JSON Pointers."""
    text = wrong.detail
    for each in wrong.errors:
        fault = f"{each.field} {each.message}"
        text = text.replace(fault, fault.removeprefix("/"))
    return text


def _check_origin(request: web.Request, options: Options) -> None:
    """Raise Foreign unless a page of ours has sent the form.

    Browsers set both headers themselves: `Sec-Fetch-Site` for secure addresses and this machine,
    `Origin` for every form. A request with neither comes from no browser that we support.
    """
    origin = urlsplit(request.headers.get("Origin", "")).netloc
    own = {request.host, urlsplit(options.public_url or "").netloc} - {""}
    site = request.headers.get("Sec-Fetch-Site")
    if site not in (None, "same-origin") or (site is None and origin not in own):
        raise Foreign
