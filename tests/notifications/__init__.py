"""Outgoing webhooks: addresses, signatures, bodies, attempts over a real network."""
