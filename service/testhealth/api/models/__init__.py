"""Request models of test health's endpoints."""
