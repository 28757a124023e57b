"""Endpoints of the merge queue: routes, request models, handlers and answers.

`responses.py` makes answers of the views of operations; `encoded.py` encodes those that
clients wait for, with their version.
"""
