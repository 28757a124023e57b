"""Rules of entry and order: what they come to for a pull request, and what is wrong with a rule."""
