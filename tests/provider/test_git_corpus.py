"""Git in a mirror and the REST API build the same trees, over merges that are easy to get wrong."""

from collections import Counter
from dataclasses import replace

from bot.github.provider import GitHubProvider
from service.provider.values import Built, Vehicle
from tests.provider.stage import mirrors_in, on_sandbox

LINES = [f"line {number}\n" for number in range(30)]
TEXT = "".join(LINES)


def changed(place, text="changed\n"):
    """The text with another line."""
    return "".join([*LINES[:place], text, *LINES[place + 1 :]])


CASES = {
    "both edit one file far apart": ({"x/t": changed(2)}, {"x/t": changed(20)}),
    "both make the same edit": ({"x/t": changed(2)}, {"x/t": changed(2), "x/n": "new\n"}),
    "one deletes what the other leaves": ({"x/t": None}, {"x/u": changed(1)}),
    "both delete": ({"x/t": None}, {"x/t": None, "x/n": "new\n"}),
    "both add the same file": ({"x/n": "new\n"}, {"x/n": "new\n", "x/m": "more\n"}),
    "a file becomes a folder": ({"x/t": None, "x/t/in": "in\n"}, {"x/n": "new\n"}),
    "names differ by case alone": ({"x/READ": "1\n"}, {"x/read": "2\n"}),
    "line ends are changed": ({"x/t": TEXT.replace("\n", "\r\n")}, {"x/n": "new\n"}),
    "the last line has no end": ({"x/t": changed(29, "end")}, {"x/t": changed(1)}),
    "one renames, the other edits another file": (
        {"x/t": None, "x/renamed": TEXT},
        {"x/u": changed(3)},
    ),
    "one renames, the other edits the same file": (
        {"x/t": None, "x/renamed": TEXT},
        {"x/t": changed(3)},
    ),
    "one renames and edits, the other edits": (
        {"x/t": None, "x/renamed": changed(1)},
        {"x/t": changed(20)},
    ),
    "both rename, each to another name": ({"x/t": None, "x/a": TEXT}, {"x/t": None, "x/b": TEXT}),
    "a folder is renamed, the other adds to it": (
        {"x/t": None, "x/u": None, "y/t": TEXT, "y/u": TEXT},
        {"x/n": "new\n"},
    ),
    "attributes ask for a union": (
        {".gitattributes": "* merge=union\n", "x/t": changed(5, "one\n")},
        {"x/u": changed(5, "two\n")},
    ),
    "names have spaces, quotes and no ASCII": ({'x/a "b" ü': "1\n"}, {"x/-dash": "2\n"}),
}


async def test_git_builds_the_trees_that_the_rest_api_builds(tmp_path):
    files = {"x/t": TEXT, "x/u": TEXT}
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as stage:
        await stage.push_files(files)
        by_rest = GitHubProvider(replace(stage.options, mirrors=None), stage.clock)
        methods: Counter[tuple[str, str]] = Counter()
        try:
            for case, changes in CASES.items():
                pulls = [await stage.open(each) for each in changes]
                by_git, by_github = [
                    trees_of(await provider.build(stage.request(*pulls, vehicle=Vehicle.PUSH)))
                    for provider in (stage.provider, by_rest)
                ]
                assert by_git == by_github, case
                # What git takes for a conflict is left to GitHub's own merge.
                method = ("git", "default") if isinstance(by_git, list) else ("rest", "conflict")
                methods[method] += 1
        finally:
            await by_rest.close()
        assert stage.built_by() == methods


def trees_of(result):
    """The tree after each step; the kind of any other result."""
    if not isinstance(result, Built):
        return type(result)
    return [prefix.tree for prefix in result.prefixes]
