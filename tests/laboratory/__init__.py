"""Real producers of test reports, and what is read of them: docs/reference/producers.md."""
