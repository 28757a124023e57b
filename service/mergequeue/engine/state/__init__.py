"""The queue while a step changes it: entries, their line, bases, holds and the target."""
