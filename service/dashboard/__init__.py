"""Pages for people: plain HTML made here, read in a browser.

A page is one question to an operation and one template. `app.py` has the table of pages and
makes answers and refusals, `readers.py` finds out who reads and what they may see, `filters.py`
turns values into text. Nothing here decides anything, and nothing can be changed by a page.

Whatever stands on a page may have been written by a stranger: names of tests, of branches,
failure messages. Templates escape all of it, no template may say otherwise, characters that
show nothing or turn the direction of text are left out, and addresses become links only where
they lead to the web. Pages load one style sheet of ours and nothing else.

The API's own pages (`/docs`) are made in `service/http/documents.py`. Both say the same to
browsers and admit callers at the same place.
"""
