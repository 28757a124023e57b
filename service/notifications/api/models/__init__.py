"""Request models of the webhook endpoints."""
