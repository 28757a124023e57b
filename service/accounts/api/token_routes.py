"""The token endpoints, one line each (API.md 9)."""

from service.accounts.api import tokens
from service.accounts.api.models import tokens as models
from service.accounts.api.models.answers import tokens as answers
from service.http.route import VERSIONED, Fetched, Route, read, write
from service.vocabulary import Role

TOKEN_ROUTES: tuple[Route, ...] = (
    Fetched(f"{VERSIONED}/tokens/self", None, tokens.own).answering(answers.Token),
    write("tokens/create", Role.ADMIN, models.CreateToken, tokens.create).answering(
        answers.IssuedToken, "conflicting_fields", "limit_reached", "scope_exceeds_own"
    ),
    read("tokens/list", models.ListTokens, tokens.list_all, Role.ADMIN).answering(
        answers.TokensListed, "invalid_page_token", "page_token_expired"
    ),
    write("tokens/rotate", Role.ADMIN, models.RotateToken, tokens.rotate).answering(
        answers.IssuedToken, "token_not_found", "limit_reached"
    ),
    write("tokens/revoke", Role.ADMIN, models.RevokeToken, tokens.revoke).answering(
        answers.TokenRevoked, "token_not_found"
    ),
)
