"""Pages for people, asked for over HTTP."""
