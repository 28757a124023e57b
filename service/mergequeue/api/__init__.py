"""Endpoints of the merge queue: routes, request models, handlers and answers.

`responses.py` makes answers of the views of operations; `encoded.py` keeps those that clients
poll until their views change.
"""
