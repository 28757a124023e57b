"""Programs that use generated clients, and what generates these."""
