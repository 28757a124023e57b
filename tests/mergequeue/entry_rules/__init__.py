"""Rules of entry and order: expressions, periods, and what they come to."""
