"""Request models of the merge queue's endpoints."""
