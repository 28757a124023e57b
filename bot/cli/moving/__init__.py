"""Import the settings of another merge queue: its files in, files for Headgate and a list out.

Theory of operation. `reading` makes a `Document`, values with their lines, of a YAML, TOML or JSON
file. `mapping` compares it with the rows of a source in `tables`: a row names a key of the other
queue and either the setting that it becomes, or why Headgate has none and what to do instead. A
key without a row is listed as unknown, so no line of a file is left out in silence.
`workflow_edits` changes workflow files as text, at the places that the YAML parser names: a
trigger for the queue's test branches is added, and a condition that names the other queue's
branches is widened. Nothing is rewritten, so comments and layout stay. `plan` joins them to the
files to write, and has `.github/headgate.yml` checked by the rules of the service.

The package reads and writes no file itself: `bot/cli/importing.py` does, and prints.

Worked example. `timeout_sec = 7200` of `bors.toml` becomes `testingTimeoutMinutes: 120` for the
queue of `main`; `branches: [staging, trying]` becomes `branches: [staging, trying,
"headgate/merge/**"]`; `block_labels` is listed with the way to keep a pull request out.
"""
