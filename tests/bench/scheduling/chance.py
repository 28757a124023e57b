"""Chance of single runs by counter: strategies that ask for the same run get the same luck."""

_MASK = (1 << 64) - 1


def mix(x: int) -> int:
    """64 well mixed bits of a number (the finalizer of splitmix64)."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def unit(x: int) -> float:
    """A number of [0, 1) from mixed bits."""
    return (mix(x) >> 11) * (1.0 / (1 << 53))


def run_key(seed: int, prs: tuple[int, ...], attempt: int) -> int:
    """64 bits for the `attempt`-th run that tests exactly these, counted from 0."""
    key = mix(mix(seed * 1000003 + 17) ^ (attempt * 0x9E37 + len(prs)))
    for pr in prs:
        key = mix(key ^ pr)
    return key


def noise(d_noise: float, key: int) -> float:
    """What a run's duration is multiplied by; mean 1, evenly spread."""
    return 1.0 + d_noise * 3.46 * (unit(key ^ 0xD00D) - 0.5)


def flakes(flake: float, key: int) -> bool:
    """Whether a run of a good tree fails."""
    return unit(key ^ 0xF1A) < flake


FLAKY_TESTS = 10
"""Tests that flake, each as often as the others."""


def flaky_test(seed: int, run: int) -> int:
    """Which test fails in a run that flakes."""
    return mix(mix(seed) ^ run) % FLAKY_TESTS
