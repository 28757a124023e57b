"""Request models of the token endpoints."""
