"""Organizations, repositories, tokens, audit entries and idempotency keys in the database."""
