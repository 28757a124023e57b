"""The page that a set-up link opens. Its button exchanges the link for a session.

Programs open links by themselves, such as previews in chats: opening a link changes nothing.
"""

from aiohttp import web

from bot.settings import Settings
from bot.setup import pages, sessions
from bot.setup.pages import FOREIGN_FORM, NO_SESSION, Pages
from bot.setup.sessions import Sessions

PATH = "/setup/enter"


class Entering:
    """Lets browsers in by a link; `leads_to` is the page that they see next."""

    def __init__(self, settings: Settings, open_sessions: Sessions, leads_to: str) -> None:
        self._settings = settings
        self._sessions = open_sessions
        self._leads_to = leads_to
        self._pages = Pages(settings)

    def offer(self, token: str) -> web.Response:
        """Show the button, if the link is valid."""
        if not self._sessions.is_valid(token):
            return self._pages.refused(403, NO_SESSION)
        return self._pages.page("enter.html", token=token, action=PATH)

    async def enter(self, request: web.Request) -> web.Response:
        """Exchange the link for a session, and go to the next page."""
        form = await pages.fields_of(request)
        if not sessions.is_own_page(request, self._settings):
            return self._pages.refused(403, FOREIGN_FORM)
        cookie = self._sessions.enter(form.get("token", ""))
        if cookie is None:
            return self._pages.refused(403, NO_SESSION)
        answer = self._pages.redirect(self._leads_to)
        sessions.set_cookie(answer, cookie, self._settings)
        return answer
