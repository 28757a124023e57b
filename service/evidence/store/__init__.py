"""Questions to the database about uploads of test runs and of target branches."""
