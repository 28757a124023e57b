"""Files of a repository as they stand at a commit: one of them whole, or the paths of all."""

import asyncio
import binascii
from base64 import b64decode

from bot.github import answers, paths
from bot.github.fields import Fields, Unreadable
from bot.github.line import Line
from service.provider.errors import Refused, RefusedCode
from service.provider.trees import TreePaths
from service.vocabulary import Sha

ABSENT = (404, 409, 422)  # missing; the repository is empty; not a commit
BASE64 = "base64"


async def read_file(line: Line, path: str, commit: Sha, bytes_max: int) -> bytes | None:
    """What a file holds, None when there is none; above 1 MB GitHub gives it as a blob alone."""
    tail = f"/contents/{paths.of_branch(path)}"
    answer = await line.get(tail, {"ref": commit}, expects=ABSENT)
    if answer.status in ABSENT:
        await line.get("")
        return None
    if isinstance(answer.content, list) or answer.fields.words("type") != "file":
        return None
    found = answer.fields
    if found.number("size") > bytes_max:
        words = f"{path} has {found.number('size'):,} bytes, more than {bytes_max:,}."
        raise Refused(words, RefusedCode.TOO_LARGE)
    if found.words("encoding") != BASE64:
        found = (await line.get(f"/git/blobs/{found.text('sha')}")).fields
    return _decoded(found)


async def tree_paths(line: Line, commit: Sha) -> TreePaths:
    """The files of a commit, by one read; GitHub cuts a list at 100,000 lines or 7 MB."""
    answer = await line.get(f"/git/trees/{commit}", {"recursive": 1}, expects=ABSENT)
    if answer.status in ABSENT:
        await line.get("")
        return TreePaths({}, complete=False)
    # So many lines would keep the loop from everything else.
    return await asyncio.to_thread(answers.tree_paths_of, answer.fields)


def _decoded(found: Fields) -> bytes:
    try:
        return b64decode(found.words("content"))
    except binascii.Error as failure:
        raise Unreadable("content: not base64") from failure
