"""The token endpoints, one line each (API.md 9)."""

from service.api import tokens
from service.api.models import tokens as models
from service.api.route import VERSIONED, Fetched, Route, read, write
from service.vocabulary import Role

TOKEN_ROUTES: tuple[Route, ...] = (
    Fetched(f"{VERSIONED}/tokens/self", None, tokens.own),
    write("tokens/create", Role.ADMIN, models.CreateToken, tokens.create),
    read("tokens/list", models.ListTokens, tokens.list_all, Role.ADMIN),
    write("tokens/rotate", Role.ADMIN, models.RotateToken, tokens.rotate),
    write("tokens/revoke", Role.ADMIN, models.RevokeToken, tokens.revoke),
)
