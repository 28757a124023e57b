"""The token endpoints, one line each (API.md 9)."""

from service.api import tokens
from service.api.models.answers import tokens as answers
from service.api.route import VERSIONED, Fetched, Route

TOKEN_ROUTES: tuple[Route, ...] = (
    Fetched(f"{VERSIONED}/tokens/self", None, tokens.own).answering(answers.Token),
)
