"""Webhook endpoints, messages and delivery attempts in the database."""
