"""What the provider and people do wrong, and what the queue then does."""
