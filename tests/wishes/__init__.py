"""Requests made from the document itself: whatever it allows is taken, all else is refused."""
