"""Answers of the webhook endpoints, as the OpenAPI document describes them."""
