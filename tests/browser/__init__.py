"""Pages in a real browser: how they look, who can use them, and what people do there."""
