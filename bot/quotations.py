"""Find where the quoted part of a mail reply begins (docs/design/comments.md 1).

Markdown knows a quotation by `>` alone. A reply by mail also has the message that it answers below
a line of dashes, below a block of headers, or below "On Monday, Alice wrote:".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

HEADERS_WITHIN = 5
"""Lines below the sender in which a mail program writes the other headers."""

HEADERS_MIN = 2

LINE_CHARS_MAX = 500
"""A longer line begins no quotation."""

COLONS = ":\uff1a"

_SENDER = """
    From|Von|De|Da|Van|Från|Fra|Lähettäjä|Od|От|Від|Kimden|Feladó|De la|Από|发件人|寄件者|寄件人
    |差出人|보낸 사람|מאת|من
"""
_OTHERS = """
    Sent|Date|To|Cc|Subject|Reply-To|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Enviada em
    |Fecha|Para|Asunto|Data|Assunto|Inviato|A|Oggetto|Verzonden|Aan|Onderwerp|Skickat|Till|Ämne|Sendt|Dato
    |Til|Emne|Lähetetty|Päivämäärä|Vastaanottaja|Aihe|Wysłano|Wysłane|Do|Temat|Odesláno|Komu|Předmět
    |Отправлено|Дата|Кому|Тема|Gönderildi|Gönderilme|Tarih|Kime|Konu|Elküldve|Dátum|Címzett|Tárgy
    |发送时间|日期|收件人|主题|送信日時|日付|日時|宛先|件名|보낸 날짜|날짜|받는 사람|제목
"""
_WROTE = """
    wrote|writes|schrieb|a écrit|escribió|escreveu|ha scritto|scrisse|schreef|skrev|kirjoitti
    |napisał|napisała|napsal|napsala|napísal|написал|написала|пишет|написав|írta|yazdı|scris|έγραψε|写道|寫道
    |のメッセージ|작성|כתב|كتب
"""


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split("|")]


def _labels(text: str) -> re.Pattern[str]:
    names = "|".join(map(re.escape, _words(text)))
    return re.compile(rf"[*_ ]*(?:{names})[*_ ]*[{COLONS}]", re.IGNORECASE)


_FROM = _labels(_SENDER)
_HEADER = _labels(_OTHERS)
_DASHES = re.compile(r"[-\u2010-\u2015_*=]{4,} *\w[^-\n]{0,80}[-\u2010-\u2015_*=]{4,} *")
_VERB = re.compile(
    rf"(?:^|[\W\d])(?:{'|'.join(map(re.escape, _words(_WROTE)))})(?:$|\W)", re.IGNORECASE
)
_ADDRESS = re.compile(r"[^\s@]@[^\s@]+\.\w")
_FOOTER = re.compile(
    r"\W*(?:reply to this email directly|you are receiving this because|message id: \W?\S+@)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line outside of quotations; `is_plain`: of a paragraph or list item, begins as text.

    `before_quote`: the next line is quoted by Markdown.
    """

    text: str
    is_plain: bool = False
    before_quote: bool = False


def own_lines(lines: Sequence[Line]) -> list[str]:
    """Return the plain lines above the quoted part of a mail reply.

    None of them where the text contains the footer of a notification and no beginning of it: then
    any line may be one of the notification.
    """
    end = next((place for place in range(len(lines)) if _begins(lines, place)), None)
    if end is None and any(_FOOTER.match(line.text) for line in lines):
        return []
    return [line.text for line in lines[:end] if line.is_plain]


def _begins(lines: Sequence[Line], place: int) -> bool:
    text = lines[place].text.strip()
    if len(text) > LINE_CHARS_MAX:
        return False
    if _DASHES.fullmatch(text):
        return True
    if _FROM.match(text):
        others = lines[place + 1 : place + 1 + HEADERS_WITHIN]
        return sum(_HEADER.match(line.text.strip()) is not None for line in others) >= HEADERS_MIN
    # A quotation by Markdown ends where its marks end.
    return not lines[place].before_quote and _is_attribution(text)


def _is_attribution(text: str) -> bool:
    """Return whether a line says that somebody wrote what follows."""
    if not text.rstrip("*_ ").endswith(tuple(COLONS)):
        return False
    return _ADDRESS.search(text) is not None or _VERB.search(text) is not None
