"""Answers of the token endpoints, as the OpenAPI document describes them."""
