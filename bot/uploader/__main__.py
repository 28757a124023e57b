"""`python3 -m bot.uploader`: the program that the composite actions run on CI's own machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence

from bot.uploader import ci, files, targets, uploading, verdict
from bot.uploader.transport import RequestFailed, Service
from bot.uploader.uploading import Content
from bot.uploader.verdict import Outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code; the token and CI's facts come from the environment."""
    parser = argparse.ArgumentParser(prog="headgate")
    commands = parser.add_subparsers(dest="command", required=True)
    upload = commands.add_parser("upload", help="upload test reports")
    upload.add_argument("--url", required=True, help="the service")
    upload.add_argument("--org", required=True, help="the organization's slug")
    upload.add_argument("--junit", required=True, help="globs, one a line")
    upload.add_argument("--variant", default="", help="flavor of the tests")
    upload.add_argument("--matrix", default="", help="the job's matrix values as JSON")
    upload.add_argument("--strict", action="store_true", help="fail when the upload fails")
    upload.set_defaults(run=_upload_reports)
    impacted = commands.add_parser("targets", help="upload the targets a pull request touches")
    impacted.add_argument("--url", required=True, help="the service")
    impacted.add_argument("--tool", required=True, choices=[*targets.TOOLS, targets.PATHS])
    impacted.add_argument("--paths", default="", help="target: globs, one a line")
    impacted.add_argument("--base", default="", help="what to compare with")
    impacted.add_argument("--on-error", default="all", choices=["all", "fail"])
    impacted.set_defaults(run=_upload_targets)
    options = parser.parse_args(arguments)
    return int(options.run(options, os.environ))


def _upload_targets(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Upload the targets with the job's own token, else that of the input; a fork's run has none.

    A fork's run is identified by its id.
    """
    run_id = environ.get("GITHUB_RUN_ID", "")
    try:
        token = ci.fetch_token(environ, options.url)
    except RequestFailed as failed:
        log(str(failed))
        token = ""
    token = token or environ.get("HEADGATE_TOKEN", "").strip()
    service = Service(options.url, token, log, fork_run=run_id)
    chosen = targets.Options(options.tool, options.paths, options.base, options.on_error == "fail")
    return targets.upload(chosen, environ, service)


def _upload_reports(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Upload the reports, and write what the job's page and later steps read."""
    outcome = Outcome()
    try:
        token = environ.get("HEADGATE_TOKEN", "").strip()
        token = token or ci.fetch_token(environ, options.url)
        if not token:
            # A fork's pull request has no secrets; the App collects its artifacts.
            write("::notice::Headgate: there is no token, so no test results were uploaded.")
            return 0
        upload(options, environ, Service(options.url, token, log), outcome)
    except RequestFailed as failed:
        outcome.failure = failed
    ending = verdict.ending_of(outcome, 0, strict=options.strict)
    write(f"{'' if outcome.answers else '::warning::'}headgate: {ending.message}")
    append(environ.get("GITHUB_STEP_SUMMARY"), verdict.summary_of(outcome.answers, ending))
    outputs = f"failed={outcome.failed}\nforgiven={outcome.quarantined}\n"
    append(environ.get("GITHUB_OUTPUT"), outputs)
    return ending.exit_code


def upload(
    options: argparse.Namespace, environ: Mapping[str, str], service: Service, outcome: Outcome
) -> None:
    """Upload the reports that the options name. Raises RequestFailed."""
    globs = [line.strip() for line in options.junit.splitlines() if line.strip()]
    metadata = {
        **ci.metadata_of(environ, _matrix_values(options.matrix)),
        "repo": ci.repository_of(environ),
        "org_url_slug": options.org,
        "variant": options.variant,
    }
    earlier = ci.triggering_run_of(environ)
    if earlier is not None:
        log(f"{earlier.description}.")
    content = Content(files.find_reports(globs, 0, log), metadata)
    uploading.upload(service, content, outcome)


def _matrix_values(text: str) -> str:
    """Return `3.12, linux` for `{"python": "3.12", "os": "linux"}`; empty without a matrix."""
    try:
        values = json.loads(text or "null")
    except ValueError:
        return text
    if not isinstance(values, dict):
        return ""
    plain = [each for each in values.values() if isinstance(each, (str, int, float))]
    return ", ".join(str(each) for each in plain)


def append(path: str | None, text: str) -> None:
    """Append to a file that CI reads later, if there is one."""
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def log(text: str) -> None:
    """Write a line with other people's text to the job's log; CI must not read it as a command."""
    write(f"headgate: {text}")


def write(text: str) -> None:
    """Write one line to the job's log, whatever its encoding."""
    line = " ".join(text.split()) + "\n"
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
