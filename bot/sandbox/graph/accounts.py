"""Accounts shaped for GraphQL."""

from graphql import GraphQLError

from bot.sandbox.records import Account, Json, Kind
from bot.sandbox.shapes.people import node_id
from bot.sandbox.world import World


def account(world: World, one: Account) -> Json:
    """A user, bot or organization; a bot's login has no `[bot]` here."""
    return {
        "__typename": one.kind.value,
        "id": node_id(one.kind, one.id),
        "databaseId": one.id,
        "login": one.login.removesuffix("[bot]") if one.kind is Kind.BOT else one.login,
        "name": one.login,
        "url": f"{world.web}/{one.login}",
        "avatarUrl": f"{world.web}/_sandbox/avatar/{one.id}",
    }


def not_found(message: str) -> GraphQLError:
    """The provider's error for everything one may not know of."""
    return GraphQLError(message, extensions={"type": "NOT_FOUND"})
