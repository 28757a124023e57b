"""Test branches built by git in a mirror of the repository (docs/design/git-builds.md).

`builder.py` chooses between git and the REST API for each build, and falls back to the REST API
whenever git cannot be used: that build continues as `testbranches.build`, which also adopts what
git made. `mirror.py` has the mirrors: creation, lock, fetch, upkeep and the limit on their size.
`chain.py` merges the heads of one build. `push.py` sends the branches of several builds in one
push. `command.py` runs each git command.

Worked example. `build` for pull request 3: one fetch brings the target's tip and the head by
their ids, `merge-base` says that the head is not contained, `merge-tree` makes the tree without
a working tree, `commit-tree` the commit, and one push creates the test branch if it does not
exist yet. Then the draft pull request is opened by the REST API. After a crash the same call
makes the same commit and finds it pushed.
"""
