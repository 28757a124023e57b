"""Which undecided pull requests may conflict with a given one."""

Targets = frozenset[int] | None


class ConflictIndex:
    """Undecided pull requests by target; a query costs what its targets hold."""

    def __init__(self, *, use_targets: bool) -> None:
        self.use_targets = use_targets
        self.members: dict[int, Targets] = {}
        self._by_target: dict[int, dict[int, None]] = {}
        self._touching_all: dict[int, None] = {}

    def query(self, targets: Targets) -> list[int]:
        """Those that may conflict, in order of arrival."""
        if not self.use_targets or targets is None:
            return list(self.members)
        found = set(self._touching_all)
        for target in targets:
            found.update(self._by_target.get(target, ()))
        return sorted(found)

    def add(self, pr: int, targets: Targets) -> None:
        """Take one in."""
        self.members[pr] = targets
        if not self.use_targets:
            return
        if targets is None:
            self._touching_all[pr] = None
        else:
            for target in targets:
                self._by_target.setdefault(target, {})[pr] = None

    def remove(self, pr: int) -> None:
        """Take one out that is decided."""
        targets = self.members.pop(pr)
        if not self.use_targets:
            return
        if targets is None:
            self._touching_all.pop(pr, None)
            return
        for target in targets:
            there = self._by_target[target]
            there.pop(pr, None)
            if not there:
                del self._by_target[target]
