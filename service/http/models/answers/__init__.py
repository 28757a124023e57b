"""The common parts of the answers of all capabilities.

An answer is a pydantic model: the handler returns it, `encoding.py` writes it, the OpenAPI
document describes it, and tests read real answers with it strictly. A model lists every key of
one answer: all are there, null where the type says so; a key that may be missing has the type
`LeftOut`. Class names are the names of the document's components, and docstrings are what its
readers see.
"""
