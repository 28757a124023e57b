"""Deletion of old rows, over the tables of all capabilities."""
