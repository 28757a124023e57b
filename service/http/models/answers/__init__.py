"""Answers as pydantic models: what the document says of them, and what tests hold them to.

No answer is made from these (`responses.py` and its kin make plain objects and bytes, which
is several times faster), so nothing here costs a request anything. A model lists every key
of one answer: all are there, null where the type says so; a key that may be missing has the
type `LeftOut`. More keys than listed are a fault of ours, although the document lets
clients expect some later (API.md 12).

A new endpoint gets its model here, named on its route by `answering`. Class names are the
names of the document's components, and docstrings are what its readers see.
"""
