"""Endpoints of the merge queue: routes, request models, handlers and answers.

`responses.py` turns the views of operations into answers; `fragments.py` keeps the encoded parts
of each entry until that entry changes.
"""
