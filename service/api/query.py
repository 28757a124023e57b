"""The query of an address as an endpoint's model (API.md 1.2)."""

from multidict import MultiMapping

from service.api.models import common
from service.api.models.common import Request
from service.errors import Malformed


def read(model: type[Request], query: MultiMapping[str]) -> Request:
    """The parameters that the model knows; others are ignored.

    Raises Malformed(invalid_parameter) for one that is given twice or is not acceptable.
    """
    given: dict[str, object] = {}
    for name, field in model.model_fields.items():
        called = field.alias or name
        values = query.getall(called, [])
        if len(values) > 1:
            raise Malformed(
                f"{called} is given {len(values)} times. Give it once.", code="invalid_parameter"
            )
        if values:
            given[called] = values[0]
    try:
        return common.read(model, given)
    except Malformed as wrong:
        found = "; ".join(f"{one.field.removeprefix('/')} {one.message}" for one in wrong.errors)
        raise Malformed(f"{found}.", code="invalid_parameter") from None
