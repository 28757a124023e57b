"""Messages as Slack's incoming webhooks take them, and Mattermost's: one text. Pure.

The text is made from the stored body, so every attempt sends the same bytes. Texts of others
mention nobody, and link only to the host of the repository (docs/design/notifications.md 4).
"""

import re
from collections.abc import Iterator, Mapping

import orjson

from service.text import markdown, phrases
from service.text.markdown import Links
from service.vocabulary import EndpointFormat

Json = Mapping[str, object]

SAID_CHARACTERS_MAX = 1000
BREAK = "\u200b"
"""Follows an `@`, so that it mentions nobody; nothing shows it."""

_ADDRESS = re.compile(r"https?://[^\s<>|]+")


def body_of(body: str, form: EndpointFormat) -> str:
    """Return what an endpoint of this format is sent for a stored body."""
    if form is EndpointFormat.JSON:
        return body
    return orjson.dumps({"text": text_of(orjson.loads(body))}).decode()


def text_of(message: Json) -> str:
    """Return a message in sentences."""
    step = _word(_object(message, "next_step"), "text")
    name, why = _word(message, "type"), _said(_word(message, "reason_message") or step)
    match name:
        case "pull_request.failed":
            return "\n".join((f"❌ {_pull(message)} was not merged: {why}", *_failures(message)))
        case "pull_request.canceled":
            return "\n".join((f"🚫 {_pull(message)} left the queue: {why}", *_failures(message)))
        case "pull_request.merged":
            commit = _code(phrases.short(_word(message, "merged_sha")).text)
            return f"🟣 {_pull(message)} was merged as {commit}."
        case "queue.held":
            hold = _said(_word(_object(message, "hold"), "message"))
            return f"⏸️ {_queue(message)} is held: {hold}"
        case "queue.released":
            return f"▶️ {_queue(message)}: {_ended(message)}"
        case "queue.state_changed":
            state = _word(message, "status").lower().replace("_", " ")
            why = f": {_reason(message)}" if _word(message, "reason") else "."
            return f"{_queue(message)} is {state} now{_by(message)}{why}"
        case "queue.landing_mismatch":
            return f"🚨 {_queue(message)}: what landed is not what was tested. {_reason(message)}"
        case "webhook.test":
            return f"This is a test by Headgate for {_code(_word(message, 'organization'))}."
        case "webhook.endpoint_disabled":
            return f"⚠️ A webhook endpoint was disabled: {_reason(message)}"
        case _:
            return _other(message, name, why)


def _other(message: Json, name: str, why: str) -> str:
    """Return the name of an event, what it is about, and why."""
    inner = [_object(message, each) for each in ("test_case", "upload")]
    addresses = (_word(each, "html_url") for each in (*inner, message))
    about = _pull(message) if "pr_number" in message else _queue(message)
    why = why or _said(_word(message, "advice"))
    shown = next((_link(each, "details") for each in addresses if _ADDRESS.fullmatch(each)), "")
    return " ".join(each for each in (f"{_code(name)}:", about, why, shown) if each)


def _pull(message: Json) -> str:
    number = f"{_slug(message)}#{message.get('pr_number')}"
    branch = _code(_word(message, "target_branch"))
    return f"{_link(_word(message, 'http_details_url'), number)} for {branch}"


def _queue(message: Json) -> str:
    """`The queue for main of octo/widgets`; the repository alone where there is no queue."""
    branch = _word(message, "target_branch")
    if not branch:
        return _slug(message)
    where = f"The queue for {_code(branch)} of {_slug(message)}"
    address = _word(message, "http_details_url")
    return f"{where} ({_link(address, 'page')})" if address else where


def _slug(message: Json) -> str:
    repository = _object(message, "repository")
    if not repository:
        return _said(_word(message, "organization"))
    return _said(f"{_word(repository, 'owner')}/{_word(repository, 'name')}")


def _reason(message: Json) -> str:
    return _said(_word(message, "reason"))


def _ended(message: Json) -> str:
    """`the hold base_red has ended`, with why if a person said it."""
    hold, why = _word(_object(message, "hold"), "reason"), _word(message, "reason")
    said = "" if why == hold else f": {_reason(message)}"
    return f"the hold {_code(hold)} has ended{said}"


def _by(message: Json) -> str:
    login = _word(_object(message, "actor"), "login")
    return f" (by {_code(login)})" if login else ""


def _failures(message: Json) -> Iterator[str]:
    """Yield a line for each failed check and test, and how the cause was found."""
    failures = _object(message, "failures")
    links = Links(f"https://{_word(_object(message, 'repository'), 'host')}")
    for check in _objects(failures, "checks"):
        yield f"• {_code(_word(check, 'name'))} failed{_log(_word(check, 'url'), links)}"
    for test in _objects(failures, "tests"):
        words = [_code(_word(test, "name"))]
        if _word(test, "message"):
            words.append(_code(_word(test, "message")))
        if _word(test, "fails_on"):
            words.append(f"also fails on {_code(_word(test, 'fails_on'))}")
        if _word(test, "page"):
            words.append(_link(_word(test, "page"), "history"))
        yield f"• {' '.join(words)}{_log(_word(test, 'log'), links)}"
    if _word(failures, "text"):
        yield _said(_word(failures, "text"))


def _log(url: str, links: Links) -> str:
    """` (log)` with its address, on the host of the repository alone."""
    address = markdown.linkable(url, links) if url else None
    return f" ({_link(address, 'log')})" if address else ""


def _link(url: str, label: str) -> str:
    """Return a label with one of our own addresses; alone if that is none."""
    return f"<{url.replace('&', '&amp;')}|{label}>" if _ADDRESS.fullmatch(url) else label


def _said(text: str) -> str:
    """Return a text of others on one line: no markup of Slack, no link of Markdown, no mention."""
    shown = _escaped(markdown.cleaned(text, SAID_CHARACTERS_MAX))
    return shown.replace("](", "] (").replace("@", f"@{BREAK}")


def _code(text: str) -> str:
    """Return a name of others as code, in which nothing is markup."""
    return f"`{_escaped(markdown.cleaned(text).replace('`', chr(39))) or '-'}`"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _word(message: Json, name: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else ""


def _object(message: Json, name: str) -> Json:
    value = message.get(name)
    return value if isinstance(value, dict) else {}


def _objects(message: Json, name: str) -> list[Json]:
    value = message.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
