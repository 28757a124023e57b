"""Why an entry waits, when it will merge, and what a command would do."""
