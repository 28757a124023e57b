"""Forms of pages: their fields, and whether a page of ours has sent them."""

import asyncio
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from service.dashboard.visitors import Visitor
from service.errors import Malformed, NotAllowed
from service.runtime import Options

FORM_BYTES_MAX = 64 * 1024
FIELDS_MAX = 200
ARRIVES_WITHIN_S = 15.0
TAG = "form_tag"
"""The secret field, which every form has."""


class Foreign(NotAllowed):
    """No page of ours has sent this form to this visitor."""

    def __init__(self) -> None:
        super().__init__(
            "The form was not sent from this page. Reload the page, and send the form again."
        )


async def read(request: web.Request, visitor: Visitor, options: Options) -> Mapping[str, str]:
    """Return the fields of a form, the last of each name.

    Raises Foreign for one that no page of ours has sent to this visitor, Malformed for a body
    that is no form.
    """
    _check_origin(request, options)
    length = request.content_length
    is_form = request.content_type == "application/x-www-form-urlencoded"
    if not is_form or length is None or length > FORM_BYTES_MAX:
        raise Malformed(f"Send a form of at most {FORM_BYTES_MAX} bytes.")
    try:
        async with asyncio.timeout(ARRIVES_WITHIN_S):
            text = (await request.read()).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX)
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
