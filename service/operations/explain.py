"""Why a pull request is not merged yet, over the stored queue (ENGINE.md 16)."""

from service.mergequeue import bases
from service.operations import pull_requests, shown
from service.operations.views import ExplainView
from service.runtime import Runtime
from service.vocabulary import QueueRef
