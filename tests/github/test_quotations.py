"""A command in the quoted part of a reply is not a command (docs/design/comments.md 1)."""

import pytest

from bot import commands
from service.provider.signals import AskCancel, AskSubmit

OUTLOOK = "From: Alice <alice@example.org>\nSent: Monday, 2 March 2026 10:00\nTo: octo/widgets\n"
HEADERS = {
    "outlook": f"{OUTLOOK}Subject: Re: [octo/widgets] Fix (PR #1)",
    "outlook below a line": f"________________________________\n{OUTLOOK}Subject: Re: Fix",
    "outlook in bold": (
        "**From:** Alice\n**Sent:** Monday, 2 March 2026 10:00\n**To:** octo\n**Subject:** Re: Fix"
    ),
    "outlook with stars": "*From:* Alice\n*Sent:* Monday\n*To:* octo\n*Subject:* Re: Fix",
    "outlook, each in a paragraph": "From: Alice\n\nSent: Monday\n\nTo: octo\n\nSubject: Re: Fix",
    "german": "Von: Alice\nGesendet: Montag, 2. März 2026 10:00\nAn: octo\nBetreff: Re: Fix",
    "french": "De : Alice\nEnvoyé : lundi 2 mars 2026 10:00\nÀ : octo\nObjet : Re: Fix",
    "spanish": "De: Alice\nEnviado: lunes, 2 de marzo de 2026\nPara: octo\nAsunto: Re: Fix",
    "portuguese": "De: Alice\nData: segunda-feira\nPara: octo\nAssunto: Re: Fix",
    "italian": "Da: Alice\nInviato: lunedì 2 marzo 2026 10:00\nA: octo\nOggetto: Re: Fix",
    "dutch": "Van: Alice\nVerzonden: maandag 2 maart 2026\nAan: octo\nOnderwerp: Re: Fix",
    "polish": "Od: Alice\nWysłano: poniedziałek\nDo: octo\nTemat: Re: Fix",
    "russian": "От: Alice\nОтправлено: 2 марта 2026 г.\nКому: octo\nТема: Re: Fix",
    "chinese": "发件人: Alice\n发送时间: 2026年3月2日\n收件人: octo\n主题: Re: Fix",
    "japanese": "差出人: Alice\n送信日時: 2026年3月2日\n宛先: octo\n件名: Re: Fix",
    "apple forwards": "Begin forwarded message:\n\nFrom: Alice\nSubject: Fix\nDate: Monday",
    "swedish": "Från: Alice\nSkickat: måndag\nTill: octo\nÄmne: Re: Fix",
}
DASHES = {
    "outlook's line": "-----Original Message-----",
    "outlook's line in german": "-----Ursprüngliche Nachricht-----",
    "outlook's line in french": "-----Message d'origine-----",
    "samsung": "-------- Original message --------",
    "proton": "\N{HYPHEN}" * 7 + " Original Message " + "\N{HYPHEN}" * 7,
    "gmail forwards": "---------- Forwarded message ---------",
    "thunderbird forwards": "-------- Forwarded Message --------",
    "chinese line": "------------------ 原始邮件 ------------------",
}
ATTRIBUTIONS = {
    "gmail": "On Mon, Mar 2, 2026 at 10:00 AM Alice <notifications@github.com> wrote:",
    "gmail, wrapped": "On Mon, Mar 2, 2026 at 10:00 AM Alice <\nnotifications@github.com> wrote:",
    "apple mail": "On 2 Mar 2026, at 10:00, Alice wrote:",
    "thunderbird": "On 02/03/2026 10:00, Alice wrote:",
    "wrapped before the verb": "On 2 Mar 2026, at 10:00, Alice Longname of the Company\nwrote:",
    "german attribution": "Am 02.03.26 um 10:00 schrieb Alice:",
    "french attribution": "Le lun. 2 mars 2026 à 10:00, Alice a écrit :",
    "spanish attribution": "El lun, 2 mar 2026 a las 10:00, Alice escribió:",
    "portuguese attribution": "Em seg., 2 de mar. de 2026 às 10:00, Alice escreveu:",
    "italian attribution": "Il giorno lun 2 mar 2026 alle 10:00 Alice ha scritto:",
    "dutch attribution": "Op ma 2 mrt 2026 om 10:00 schreef Alice:",
    "swedish attribution": "Den mån 2 mars 2026 kl 10:00 skrev Alice:",
    "polish attribution": "pon., 2 mar 2026 o 10:00 Alice napisał(a):",
    "russian attribution": "пн, 2 мар. 2026 г. в 10:00, Alice <alice@example.org>:",
    "chinese attribution": "Alice 于2026年3月2日周一 10:00写道：",
    "japanese attribution": "2026年3月2日(月) 10:00 Alice <alice@example.org>:",
    "korean attribution": "2026년 3월 2일 (월) 오전 10:00, Alice님이 작성:",
    "an address alone": "alice@example.org:",
}
STARTS = {**HEADERS, **DASHES, **ATTRIBUTIONS}

MARKED = {
    "marks": "> LGTM\n> /merge",
    "marks without a space": ">LGTM\n>/merge",
    "marks and a lazy line": "> LGTM\n/merge",
    "two marks": "> > /merge",
    "below an attribution": "On Monday, Alice wrote:\n> LGTM\n>\n> /merge",
    "an alert": "> [!NOTE]\n> /merge",
    "in a list": "- > /merge",
    "blockquote": "<blockquote>\n\n/merge\n\n</blockquote>",
    "blockquote of gmail": '<blockquote class="gmail_quote">\n\n/merge\n\n</blockquote>',
    "open blockquote": "<blockquote>\n\n/merge",
    "two blockquotes": "<blockquote><blockquote>\n\n</blockquote>\n\n/merge\n\n</blockquote>",
    "upper case": "<BLOCKQUOTE>\n\n/merge\n\n</BLOCKQUOTE>",
    "pre": "<pre>\n/merge\n</pre>",
    "code": "<code>\n\n/merge\n\n</code>",
    "code in a paragraph": "it says <code>\n/merge\n</code>",
    "details": "<details><summary>Log</summary>\n\n/merge\n\n</details>",
    "del": "<del>\n\n/merge\n\n</del>",
    "table": "<table><tr><td>\n\n/merge\n\n</td></tr></table>",
    "cells": "| a |\n|---|\n| /merge |",
    "comment": "<!--\n\n/merge\n\n-->",
    "comment in a line": "a <!-- /merge -->",
    "fence": "```\n/merge\n```",
    "indented": "    /merge",
    "footnote": "see[^1]\n\n[^1]:\n/merge",
    "footer": "/merge\n\n—\nReply to this email directly, view it on GitHub, or unsubscribe.\n",
    "footer with an id": "/merge\n\n—\nMessage ID: <octo/widgets/pull/1@github.com>",
    "footer of a subscription": "/merge\n\n—\nYou are receiving this because you were mentioned.",
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_command_below_the_beginning_of_a_quoted_mail_is_none(start: str) -> None:
    for text in (f"No.\n\n{start}\n\n/merge", f"{start}\nLGTM\n\n/merge\n\n-- \nAlice"):
        assert commands.parse(text) is None, text
        assert commands.parse(text.replace("\n", "\r\n")) is None, text


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_command_above_the_quoted_mail_counts_alone(start: str) -> None:
    footer = "—\nReply to this email directly, view it on GitHub, or unsubscribe."
    text = f"/merge cancel\n\n{start}\n\n/merge\n\n{footer}"
    assert commands.parse(text) == AskCancel()


@pytest.mark.parametrize("quoted", MARKED.values(), ids=MARKED)
def test_a_command_inside_of_marks_or_elements_is_none(quoted: str) -> None:
    assert commands.parse(quoted) is None


CLOSED = {
    name: text for name, text in MARKED.items() if "footer" not in name and "open" not in name
}


@pytest.mark.parametrize("quoted", CLOSED.values(), ids=CLOSED)
def test_a_command_before_and_after_marks_or_elements_counts(quoted: str) -> None:
    assert commands.parse(f"/merge cancel\n\n{quoted}") == AskCancel()
    assert commands.parse(f"{quoted}\n\nThanks!\n\n/merge cancel") == AskCancel()


@pytest.mark.parametrize(
    "text",
    [
        "Vec<T> is fine\n\n/merge",
        "a <br>\n/merge",
        '<img src="x">\n\n/merge',
        "`<blockquote>` is fine\n\n/merge",
        "see https://example.org:\n\n/merge",
        "Ready:\n/merge",
        "From: main\n/merge",
        "From: main\nTo: release\n\n/merge",
        "---\n/merge",
        "-- Alice --\n/merge",
        "> What about bob@example.org?\n\nFine.\n\n/merge",
        "alice@example.org wrote it.\n/merge",
        "I will reply to this email directly.\n/merge",
    ],
)
def test_what_only_resembles_a_quotation_hides_no_command(text: str) -> None:
    assert commands.parse(text) == AskSubmit()
