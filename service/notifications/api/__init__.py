"""Endpoints for webhook endpoints of an organization and their deliveries."""
