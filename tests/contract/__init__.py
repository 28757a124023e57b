"""What others have published, and whether we keep to it."""
