"""Answers of test health's endpoints, as the OpenAPI document describes them."""
