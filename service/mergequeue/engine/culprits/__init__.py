"""Conclude what a run shows, and which pull request caused a failure."""
