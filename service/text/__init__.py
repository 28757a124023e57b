"""Text that people read: phrases, Markdown and times. Pure.

A sentence is a `Phrase` (`phrases.py`): our own words, and between them texts of others, numbers of
pull requests and links, each kept as what it is. `markdown.py` writes a phrase as Markdown for
comments and check runs, or as plain text for the API and titles. A foreign text can only enter as
an argument of `phrase`, and an argument is always a code span, so the easy way is the safe way.
"""
