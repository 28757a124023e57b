"""Lists in GraphQL: pages by cursor, as every connection of the provider has them."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any

from graphql import GraphQLError, GraphQLResolveInfo

from bot.sandbox.records import Json

PAGE_MAX = 100


def connect(
    items: Sequence[Any], shape: Callable[[Any], Json], extra: Json | None = None
) -> Callable[..., Json]:
    """A connection over `items`; only the ones of the asked page are shaped.

    `first` or `last` must be given and at most PAGE_MAX, as at the provider.
    """

    def page(info: GraphQLResolveInfo[Any], **asked: Any) -> Json:
        first, last = asked.get("first"), asked.get("last")
        size = first if first is not None else last
        if size is None:
            name = info.field_name
            said = (
                "You must provide a `first` or `last` value to properly paginate "
                f"the `{name}` connection."
            )
            raise GraphQLError(said, extensions={"type": "MISSING_PAGINATION_BOUNDARIES"})
        if not 0 <= size <= PAGE_MAX:
            said = (
                f"Requesting {size} records on the `{info.field_name}` connection exceeds "
                f"the `first` limit of {PAGE_MAX} records."
            )
            raise GraphQLError(said, extensions={"type": "EXCESSIVE_PAGINATION"})
        low = _place(asked.get("after"), -1) + 1
        high = _place(asked.get("before"), len(items))
        if first is not None:
            high = min(high, low + size)
        else:
            low = max(low, high - size)
        return {
            "totalCount": len(items),
            "nodes": [shape(one) for one in items[low:high]],
            "pageInfo": {
                "hasNextPage": high < len(items),
                "hasPreviousPage": low > 0,
                "startCursor": _cursor(low) if low < high else None,
                "endCursor": _cursor(high - 1) if low < high else None,
            },
            **(extra or {}),
        }

    return page


def _cursor(place: int) -> str:
    return b64encode(f"cursor:{place}".encode()).decode()


def _place(cursor: str | None, otherwise: int) -> int:
    if cursor is None:
        return otherwise
    try:
        return int(b64decode(cursor).decode().removeprefix("cursor:"))
    except ValueError:
        said = f"`{cursor}` does not appear to be a valid cursor."
        raise GraphQLError(said, extensions={"type": "INVALID_CURSOR_ARGUMENTS"}) from None
