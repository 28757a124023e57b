"""The documents, one line each (API.md 10), and the files that their pages load."""

from service.http import answer, documents
from service.http.documents import HTML, ErrorCode
from service.http.route import Document, Route

DOCUMENT_ROUTES: tuple[Route, ...] = (
    Document("/openapi.json", documents.specification, answer.JSON),
    Document("/docs", documents.entrance, HTML, status=302),
    Document("/docs/api", documents.viewer, HTML),
    Document(
        "/docs/errors/{code}",
        documents.error,
        HTML,
        variables=ErrorCode,
        codes=("unknown_endpoint",),
    ),
    Document("/static/{digest}/{name:.+}", documents.static, "text/javascript", is_listed=False),
)
