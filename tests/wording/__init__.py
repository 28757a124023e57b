"""Texts that people read, compared as texts, and what may never stand in them."""
