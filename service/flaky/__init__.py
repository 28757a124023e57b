"""From a test report to a decision (FLAKY.md): values in, values out."""
