"""Pages for people: plain HTML made here, read in a browser.

A page is one question to an operation and one template. `pages.py` has the table of pages and of
their actions, `app.py` answers requests and forms, `rendering.py` fills templates. `readers.py`
finds out who visits, `visitors.py` what they may do, `sign_in.py` signs them in, `requests.py`
reads forms.
`marks.py` has the word, glyph and color of each state, `filters.py` turns values into text.
`page_of_*.py` make the content of pages, `line.py` that of the drawing
of a queue. Sentences about queues come from `service/mergequeue/wording`. Nothing here decides
anything: an action of a page calls the operation that commands and the API call.

Whatever stands on a page may have been written by a stranger: names of tests, of branches,
failure messages. Templates escape all of it, no template may say otherwise, characters that
show nothing or turn the direction of text are left out, and addresses become links only where
they lead to the web. Pages load style sheets and scripts of ours and nothing else: `frame.js` has
the theme and the keys, `times.js` shows times in the reader's zone, and `live.js` keeps pages
current. Everything works without scripts.

The API's own pages (`/docs`) are made in `service/http/documents.py`. Both say the same to
browsers and admit callers at the same place.
"""
