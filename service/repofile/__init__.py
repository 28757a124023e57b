"""Read a YAML file of a repository as YAML 1.2 with the line of each value.

Theory of operation. `document.read` turns bytes into a `Document`: plain values (objects, lists,
texts, numbers, booleans, null) and the line of each of them by its path. PyYAML splits the text
into events; this package builds the values from the events. So it can refuse what a file of
settings does not need and what would make reading expensive or ambiguous: more than 256 KiB, more
than 12 levels, more than 20,000 values, anchors and aliases, tags, several documents, and a key
that occurs twice. The words of YAML 1.1 for booleans are texts: `hedging: OFF` is the text "OFF".

Workflow files are read by the same code under other `Rules`: they may have aliases, as GitHub
Actions allows them. An alias counts as many values as the value that it stands for, and as many
levels, so a file cannot become larger than one without aliases.

The package does not know which settings there are. `service/mergequeue/operations` checks the
values and finds the line of an error by its path.

Worked example. `queues: {main: {concurrency: 3}}` on line 2 becomes the value
`{"queues": {"main": {"concurrency": 3}}}`; `line_of(("queues", "main", "concurrency"))` is 2.
"""
