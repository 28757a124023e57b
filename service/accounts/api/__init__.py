"""Authentication of API requests, and the endpoints for API tokens."""
