"""Signing in at the provider, and out (docs/design/security.md 6).

A sign-in is bound to the browser that began it by a cookie with a random verifier: `state` is a
hash of it, and the code is only exchanged together with it (PKCE). The cookie also has the page to
return to. Nothing is stored before the person is known.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from urllib.parse import quote, unquote

import structlog
from aiohttp import web

from service.accounts import administrators, sessions
from service.accounts.api.admission import Admission
from service.dashboard import readers, requests
from service.dashboard.rendering import Rendering
from service.errors import ServiceError, Unauthenticated
from service.provider.errors import ProviderError
from service.runtime import Runtime, SignIn

VERIFIER_BYTES = 32
BEGUN_FOR_S = 600
"""GitHub's codes are valid for ten minutes."""
PATH_CHARACTERS_MAX = 2000

NOT_BEGUN = (
    "This sign-in was not begun in this browser",
    "Or it took more than ten minutes. Sign in again.",
)
DENIED = ("You did not sign in", "The other site was not allowed to say who you are.")

log = structlog.get_logger()


class SignInPages:
    """The addresses of a sign-in."""

    def __init__(
        self, runtime: Runtime, admission: Admission, rendering: Rendering, sign_in: SignIn
    ) -> None:
        self._runtime = runtime
        self._admission = admission
        self._rendering = rendering
        self._sign_in = sign_in
        self._readers = readers.Readers(runtime, admission)
        self._begun = f"{readers.cookie_name(runtime)}-begun"

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of these addresses."""
        return [
            web.get("/login", self.begin, allow_head=False),
            web.get(self._sign_in.callback, self.finish, allow_head=False),
            web.post("/logout", self.leave),
        ]

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Send the browser to the provider."""
        verifier = secrets.token_urlsafe(VERIFIER_BYTES)
        path = own_path(request.query.get("next", "/"))
        answer = self._rendering.redirect(302, self._sign_in.address(_state(verifier), verifier))
        self._set_cookie(answer, self._begun, f"{verifier}.{quote(path, safe='')}", BEGUN_FOR_S)
        return answer

    async def finish(self, request: web.Request) -> web.StreamResponse:
        """Exchange the code that the browser brings back, and start a session."""
        verifier, _, path = request.cookies.get(self._begun, "").partition(".")
        state = request.query.get("state", "")
        if not verifier or not hmac.compare_digest(state.encode(), _state(verifier).encode()):
            return self._rendering.sign_in_again(400, *NOT_BEGUN)
        if "code" not in request.query:
            return self._rendering.sign_in_again(403, *DENIED)
        try:
            self._admission.check_stranger(request)
            person = await self._sign_in.person_of(request.query["code"], verifier)
            await administrators.note_sign_in(self._runtime, self._sign_in.host, person)
            cookie = await sessions.open_session(self._runtime, self._sign_in.host, person)
        except (ServiceError, ProviderError) as error:
            if isinstance(error, Unauthenticated):
                self._admission.count_stranger(request)
            return self._rendering.error(error, self._sign_in.callback)
        log.info("signed_in", person=person.id)
        answer = self._rendering.redirect(302, own_path(unquote(path)))
        self._set_cookie(answer, self._begun, "", 0)
        name = readers.cookie_name(self._runtime)
        self._set_cookie(answer, name, cookie, int(sessions.AGE_MAX.total_seconds()))
        return answer

    async def leave(self, request: web.Request) -> web.StreamResponse:
        """End the session."""
        try:
            visitor = await self._readers.visitor(request)
            await requests.read(request, visitor, self._runtime.options)
            name = readers.cookie_name(self._runtime)
            await sessions.end(self._runtime, request.cookies[name], visitor.actor)
        except ServiceError as error:
            return self._rendering.error(error, "/logout")
        answer = self._rendering.redirect(303, "/")
        self._set_cookie(answer, name, "", 0)
        return answer

    def _set_cookie(self, answer: web.Response, name: str, value: str, age_s: int) -> None:
        answer.set_cookie(
            name,
            value,
            path="/",
            max_age=age_s,
            httponly=True,
            samesite="Lax",
            secure=readers.is_secure(self._runtime),
        )


def _state(verifier: str) -> str:
    """Return the `state` of a sign-in: a hash, because addresses end up in logs."""
    digest = hashlib.sha256(f"state {verifier}".encode()).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def own_path(path: str) -> str:
    """Return a path of ours, the first page for anything else: nothing leads to other sites."""
    is_plain = path.isascii() and path.isprintable() and len(path) <= PATH_CHARACTERS_MAX
    # Browsers read a second slash, of either kind, as the beginning of a host.
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_plain and is_own else "/"
