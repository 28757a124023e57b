"""`python3 -m bot.uploader`: what the composite actions run on CI's own machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence

from bot.uploader import ci, files, oidc, sending, targets, touched, verdict
from bot.uploader.sending import Request, Service, Unsent
from bot.uploader.verdict import Ending, Told


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code; the token and what CI says come from the environment."""
    parser = argparse.ArgumentParser(prog="headgate")
    commands = parser.add_subparsers(dest="command", required=True)
    upload = commands.add_parser("upload", help="upload test reports")
    upload.add_argument("--url", required=True, help="the service")
    upload.add_argument("--org", required=True, help="the organization's slug")
    upload.add_argument("--junit", required=True, help="globs, one a line")
    upload.add_argument("--variant", default="", help="flavor of the tests")
    upload.add_argument("--matrix", default="", help="the job's matrix values as JSON")
    upload.add_argument("--strict", action="store_true", help="fail when the upload fails")
    upload.set_defaults(run=run)
    told = commands.add_parser("targets", help="tell what a pull request touches")
    told.add_argument("--url", required=True, help="the service")
    told.add_argument("--tool", required=True, choices=[*touched.TOOLS, targets.PATHS])
    told.add_argument("--paths", default="", help="target: globs, one a line")
    told.add_argument("--base", default="", help="what to compare with")
    told.add_argument("--on-error", default="all", choices=["all", "fail"])
    told.set_defaults(run=run_targets)
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen, os.environ))


def run_targets(chosen: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Tell what the pull request touches; a fork's run, which has no token, names itself."""
    service = Service(
        chosen.url,
        environ.get("HEADGATE_TOKEN", "").strip(),
        say_so,
        fork_run=environ.get("GITHUB_RUN_ID", ""),
    )
    wish = targets.Wish(chosen.tool, chosen.paths, chosen.base, chosen.on_error == "fail")
    return targets.upload(wish, environ, service, say_so)


def run(chosen: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Upload as chosen, and write what the job's page and later steps read."""
    token = environ.get("HEADGATE_TOKEN", "").strip()
    told = Told()
    answers = told.answers
    try:
        token = token or oidc.token_of(environ, chosen.url)
    except Unsent as trouble:
        ending = verdict.unsent_ending(trouble, told, 0, strict=chosen.strict)
        say(f"::warning::headgate: {ending.said}")
        return ending.exit_code
    if not token:
        # A fork's pull request has no secrets; the App collects its artifacts (FLAKY.md 2.9).
        say("::notice::Headgate: there is no token, so no test results were uploaded.")
        return 0
    try:
        ending = uploaded(chosen, environ, Service(chosen.url, token, say_so), told)
    except Unsent as trouble:
        ending = verdict.unsent_ending(trouble, told, 0, strict=chosen.strict)
    say(f"{'' if answers else '::warning::'}headgate: {ending.said}")
    append(environ.get("GITHUB_STEP_SUMMARY"), verdict.summary_of(answers, ending))
    failed, forgiven = (
        sum(each.failed for each in answers),
        sum(each.forgiven for each in answers),
    )
    append(environ.get("GITHUB_OUTPUT"), f"failed={failed}\nforgiven={forgiven}\n")
    return ending.exit_code


def uploaded(
    chosen: argparse.Namespace, environ: Mapping[str, str], service: Service, told: Told
) -> Ending:
    """How the uploads end; `told` gets what was said of each. Raises Unsent."""
    globs = [line.strip() for line in chosen.junit.splitlines() if line.strip()]
    meta = {
        **ci.facts_of(environ, matrix_of(chosen.matrix)),
        "repo": ci.repository_of(environ),
        "org_url_slug": chosen.org,
        "variant": chosen.variant,
    }
    before = ci.triggering_run_of(environ)
    if before is not None:
        say_so(f"{before.said}.")
    found = files.reports_in(globs, 0, say_so)
    told.unread.extend(found.unread)
    batches = list(files.batches(found.reports))
    meta.update(files.session_of(len(batches), found.unread))
    for batch in batches:
        kind, body = files.form(meta, batch)
        try:
            answer = verdict.answer_of(service.ask(Request(sending.UPLOAD, body, kind)))
        except Unsent as trouble:
            verdict.pass_over(told, batch, trouble)
            continue
        for warning in answer.warnings:
            say_so(warning)
        told.answers.append(answer)
    return verdict.ending_of(told, 0)


def matrix_of(text: str) -> str:
    """`3.12, linux` of `{"python": "3.12", "os": "linux"}`; nothing for a job without matrix."""
    try:
        values = json.loads(text or "null")
    except ValueError:
        return text
    if not isinstance(values, dict):
        return ""
    plain = [each for each in values.values() if isinstance(each, (str, int, float))]
    return ", ".join(str(each) for each in plain)


def append(path: str | None, text: str) -> None:
    """Add to a file that CI reads afterwards; without one nothing happens."""
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def say_so(text: str) -> None:
    """One line of the job's log that others had a hand in: CI must not take it for an order."""
    say(f"headgate: {text}")


def say(text: str) -> None:
    """One line of the job's log, in whatever it is written in."""
    line = " ".join(text.split()) + "\n"
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
