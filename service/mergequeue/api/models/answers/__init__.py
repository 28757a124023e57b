"""Answers of the merge queue's endpoints, as the OpenAPI document describes them."""
