"""Whole stories, told through the real parts: comments, HTTP, git, both databases."""
