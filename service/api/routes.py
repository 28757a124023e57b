"""Every endpoint, one line each (API.md 4 to 6, 9, 10)."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from service.api import pull_requests, queues, testing, tokens
from service.api.call import Call
from service.api.models import pull_requests as pull_request_models
from service.api.models import queues as queue_models
from service.api.models import testing as testing_models
from service.api.models.common import Request
from service.api.responses import Json
from service.vocabulary import Role

Asked = TypeVar("Asked", bound=Request)
Shown = Json | bytes
Answering = Callable[[Call, Asked], Awaitable[Shown]]

VERSIONED = "/v1"
HEALTHZ, READYZ, STATUS = "/healthz", "/readyz", f"{VERSIONED}/status"


@dataclass(frozen=True, slots=True)
class Read(Request_ := object):
    pass
