"""Many life cycles of pull requests, and what is left of each."""
