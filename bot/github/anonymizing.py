"""Replacement of all that names people, repositories, or what they wrote, in GitHub's messages.

What is kept is listed; everything else is replaced, and the same value always by the same
placeholder, so that a recording still shows which values are equal.
"""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

SOMEWHERE = "https://github.example/"
"""In place of every host in an address inside a message."""

TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?")
SHA = re.compile(r"[0-9a-f]{40}")
ADDRESS = re.compile(r"[a-z][a-z+]*://|[\w.-]+@[\w.-]+:")
MAIL = re.compile(r"[^\s@]+@[^\s@]+")
HEADER = re.compile(r"[\w ,:;=.+/-]{1,100}")
ROOT = re.compile(r"^/api(/v3)?(?=/)")
PULL_REF = re.compile(r"refs/pull/\d+/(head|merge)")
ENUM = re.compile(r"[A-Za-z_]{1,40}")
PARTS = re.compile(r"(\.\.\.|[/:,])")
SAID = re.compile(r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|\S+")
PLAIN = re.compile(r"\d{1,5}|([^\w\u0080-\U0010ffff]|[\u2010-\u2026])*")
"""A small number or a sign of a sentence."""
NUMBERED_ID = re.compile(
    r"(?<![^\W_])((?:ids?|installation|integration|user|app)\W{1,3})(\d+)\b", re.IGNORECASE
)
"""A number in a sentence that is somebody's, also a small one."""
SIGNS = ",:;!?()`\"'"
NO_COMMIT = "0" * 40
BOT_SUFFIX = "[bot]"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENUMS = _words(
    """
    action annotation_level author_association authorAssociation conclusion content_type
    current_user_can_bypass enforcement enforcement_level event events mergeable
    mergeStateStatus mergeable_state merge_method merge_state method permission privacy reason
    repository_selection reviewDecision role rollup side source_type state state_reason
    stateReason status target_type token_type type visibility __typename permissions
    merge_commit_message merge_commit_title squash_merge_commit_message
    squash_merge_commit_title allowed_merge_methods encoding start_side code
    """
)
"""Fields whose values are words of GitHub."""

LEVELS = _words(
    """
    none read triage write maintain admin pull push
    """
)

SENTENCE_WORDS = _words(
    """
    a about abuse access accessible action active added address again ago all allow allowed
    already an and api app approval approving archived are associated asynchronous at attempted
    authorization authorized auto auto-merge auto-merging bad base be because been before being
    between blank blocked body branch branches but by bypassed bytesize can can't cancel cannot
    change changes characters check checks closed code coerce collaborator comment comments
    commit commits completed configured conflict conflicts contain content context conversation
    could create created creation creations credentials current currently custom date default
    delete denied deployment dequeue detected detection determined did didn't disabled does
    draft due each email enable endpoint error errors exceeded exceeds exist exists expected
    expectedheadoid failed failing fast feature few fixed for force-push form forward found from
    git github gitobjectid given granted has have head id in information installation instead
    integration invalid is issue issues it items jobs last later least level limit locked long
    made make match matched maximum may mechanism member merge mergeability mergeable merged
    mergepullrequestinput merging message minutes missing modified modify month more must new no
    not number of on one only or other out over owner params parent part pattern pending
    permission permissions please point pr's previous private pro progress proposed protected
    provided prs public publish pull push pusher pushes queue queued quickly quoted rate reached
    read-only rebased ref reference refusing regex remote removed repository request requested
    requesting requests require required rerequestable resolved resource rest restricted results
    retry review reviewer reviewers rule rules run running satisfied scanning secondary see
    server set sha signatures so someone stack stacked state status statuses still submitted
    subschema succeeded successful summary supplied supported suspended tags target temporarily
    text than that the there this through to too triggered try type unable update updated
    upgrade use uses using valid validation value variable verified via view violations visit
    wait waiting was wasn't were when where which with without workflow workflows would write
    yet you you're your
    """
)
"""Words of the sentences with which GitHub refuses; others there may be names."""

EMPTIED = frozenset(
    {"custom_properties", "client_payload", "payload", "inputs", "config", "matrix"}
)
"""Objects whose very names of fields are chosen by people."""

SENTENCES = frozenset({"message", "errors", "documentation_url"})
DOCUMENTATION = ("https://docs.github.com/", "https://developer.github.com/")

API_WORDS = _words(
    """
    repos repositories app apps installations installation access_tokens hook deliveries
    attempts pulls issues comments reviews labels merge merges merge-async update-branch
    commits files branches protection required_status_checks rename git ref refs heads tags
    pull head matching-refs trees blobs compare check-runs check-suites status statuses rules
    rulesets collaborators permission contents actions runs jobs workflows artifacts logs zip
    rerun rerun-failed-jobs cancel force-cancel rerequest user users orgs graphql reactions
    stacks requested_reviewers dismissals assignees timeline events tarball zipball
    """
)
"""Parts of an address of the API."""

REF_WORDS = _words(
    """
    refs heads tags pull head main master headgate merge temp live dry-test merge-queue .github
    headgate.yml CODEOWNERS
    """
)
"""Parts of the name of a branch or file that say nothing of a repository."""

QUERY = _words(
    """
    per_page page state filter sort direction status_code since status recursive
    """
)
QUERY_VALUE = re.compile(r"[a-z_]{1,40}|\d{1,3}|[\dTZ:.+-]*")
NUMBERED = frozenset({"pulls", "issues", "pull"})
NAMED = frozenset({"repos", "orgs", "users", "apps", "collaborators", "labels", "contents"})
REF_AFTER = frozenset({"branches", "heads", "tags", "compare", "ref", "matching-refs", "contents"})


class Anonymizer:
    """The placeholders of one recording."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._ids: dict[str, int] = {}
        self._shas: dict[str, str] = {NO_COMMIT: NO_COMMIT}

    def id(self, number: int | str) -> int:
        """Return the placeholder of an id, which is a number too."""
        return self._ids.setdefault(str(number), len(self._ids) + 1)

    def word(self, text: str) -> str:
        """Return the placeholder of a word; upper and lower case count as equal."""
        if text.endswith(BOT_SUFFIX) and text != BOT_SUFFIX:
            return self.word(text.removesuffix(BOT_SUFFIX)) + BOT_SUFFIX
        return self._words.setdefault(text.casefold(), f"w{len(self._words) + 1}")

    def sha(self, text: str) -> str:
        """Return the placeholder of a commit or another object of git."""
        return self._shas.setdefault(text, f"{len(self._shas):040x}")

    def name(self, text: str) -> str:
        """Return the placeholder of a name, part by part: `owner/repository`, `refs/heads/x`."""
        if not text or TIME.fullmatch(text) or PULL_REF.fullmatch(text):
            return text
        if SHA.fullmatch(text):
            return self.sha(text)
        if ADDRESS.match(text):
            return self.address(text)
        if MAIL.fullmatch(text):
            return self.word(text) + "@example.org"
        if any(character.isspace() for character in text):
            return self.word(text)
        return "".join(self._part(part) for part in PARTS.split(text))

    def _part(self, part: str) -> str:
        if part in REF_WORDS or not part or PARTS.fullmatch(part):
            return part
        return self.sha(part) if SHA.fullmatch(part) else self.word(part)

    def message(self, value: object, field: str = "") -> object:
        """Return a message, or a part of it that is the value of `field`."""
        if isinstance(value, dict):
            return {name: self._member(name, each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.message(each, field) for each in value]
        if isinstance(value, str):
            is_enum = field in ENUMS and ENUM.fullmatch(value)
            return value if is_enum or value in LEVELS else self.name(value)
        if isinstance(value, int) and not isinstance(value, bool) and _is_id(field):
            return self.id(value)
        return value

    def _member(self, name: str, value: object) -> object:
        if name in EMPTIED and isinstance(value, dict | list):
            return type(value)()
        if name == "permissions" and isinstance(value, dict):
            return {right: self.message(level, "permissions") for right, level in value.items()}
        return self.message(value, name)

    def refusal(self, value: object) -> object:
        """Return the answer of a refused call, whose sentences are kept without their names."""
        if isinstance(value, list):
            return [self.refusal(each) for each in value]
        if isinstance(value, str):
            return self.sentence(value)
        if not isinstance(value, dict):
            return value
        return {
            name: self.refusal(each) if name in SENTENCES else self._member(name, each)
            for name, each in value.items()
        }

    def sentence(self, text: str) -> str:
        """Return a sentence of GitHub without what it quotes and without names."""
        if ADDRESS.match(text) and not any(character.isspace() for character in text):
            return text if text.startswith(DOCUMENTATION) else self.address(text)
        hidden = NUMBERED_ID.sub(lambda found: f"{found[1]}{self.id(found[2])}", text)
        return SAID.sub(lambda found: self._said(found.group()), hidden)

    def _said(self, word: str) -> str:
        """Return a word of a sentence, or what it quotes, between its signs."""
        bare = word.lstrip(SIGNS).rstrip(f"{SIGNS}.")
        start = len(word) - len(word.lstrip(SIGNS))
        said = bare.casefold().replace("\u2019", "'")
        is_kept = said in SENTENCE_WORDS or PLAIN.fullmatch(bare)
        if is_kept or word.startswith(DOCUMENTATION):
            return word
        return word[:start] + self.name(bare) + word[start + len(bare) :]

    def address(self, url: str) -> str:
        """Return an address inside a message at another host, without query and template."""
        try:
            path = urlsplit(url.split("{", 1)[0]).path if "://" in url else ""
        except ValueError:
            path = ""
        return SOMEWHERE + self.path(path).lstrip("/")

    def path(self, url: str) -> str:
        """Return the path and the query of an address of the API."""
        address = urlsplit(url)
        parts = [unquote(part) for part in ROOT.sub("", address.path).split("/")]
        kept = [self._segment(parts, place) for place in range(len(parts))]
        asked = [
            (name, value if name in QUERY and QUERY_VALUE.fullmatch(value) else self.name(value))
            for name, value in parse_qsl(address.query)
        ]
        return "/".join(kept) + (f"?{urlencode(asked)}" if asked else "")

    def _segment(self, parts: list[str], place: int) -> str:
        part, before = parts[place], parts[place - 1] if place else ""
        is_owned = place > 1 and parts[place - 2] == "repos"
        if before not in NAMED and not is_owned and part in API_WORDS | REF_WORDS:
            return part
        if part.isdecimal() and not REF_AFTER.intersection(parts[:place]):
            return part if before in NUMBERED else str(self.id(part))
        return self.name(part)


def _is_id(field: str) -> bool:
    """Return whether a field has an id; a list of them is named by several."""
    return field in ("id", "ids") or field.endswith(("_id", "_ids", "Id", "Ids"))


HEADERS = _words(
    """
    date link retry-after x-accepted-github-permissions x-github-api-version-selected
    x-github-media-type x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset
    x-ratelimit-resource x-ratelimit-used
    """
)


def headers(given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer that are about limits, rights and versions.

    Of a link to the next page only its relation.
    """
    kept = {
        name: value
        for name, value in given.items()
        if name in HEADERS and (name == "link" or HEADER.fullmatch(value))
    }
    if "link" in kept:
        kept["link"] = ", ".join(
            f'<{SOMEWHERE}>; rel="{each}"' for each in re.findall(r'rel="(\w+)"', kept["link"])
        )
    return kept
