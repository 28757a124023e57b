"""The JSON Schema of the repository's file, for editors; without token."""

from service.http.route import JSON, Document, Look, Page, Route
from service.mergequeue.operations import repository_file


def _repository_file_schema(_: Look) -> Page:
    """Return the JSON Schema of `.github/headgate.yml`."""
    return Page(JSON, repository_file.encoded_schema())


SCHEMA_ROUTES: tuple[Route, ...] = (
    Document(
        "/schemas/headgate.json",
        _repository_file_schema,
        JSON,
        operation="getRepositoryFileSchema",
    ),
)
"""The documents of the merge queue."""
