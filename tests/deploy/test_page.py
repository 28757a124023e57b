"""Every command and file of the pages for operators is run or checked, or listed here."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from bot import settings
from tests.deploy import pages
from tests.deploy.tools import composed, rendered, resources, run
from tests.harness.needs import needs
from tests.tidy.tree import ROOT

PAGE, OPERATING = (
    (ROOT / f"docs/how-to/{name}.md").read_text("utf-8") for name in ("deploy", "operate")
)
BLOCKS = pages.blocks(PAGE)

NOT_RUN = {
    r"docker build ": "there is no engine; test_image.py plays the file",
    r"export \w+=": "sets a variable for the commands after it",
    r"kubectl (apply|logs|exec) ": "there is no cluster; the folder is rendered below",
    r"sudo (useradd|systemctl|tee) |journalctl ": "changes this machine",
    r"sudo (python3 -m venv|/opt/headgate/bin/pip) ": "as the Containerfile does it",
    r"\w+=\S+$": "a line of settings, read below",
    r'pip install "headgate\[tracing\]"$': "fetches packages; test_operate.py uses the same ones",
    r"curl -s http://127\.0\.0\.1:9642/": "the admin listener of a service that runs; "
    "test_troubles_of_database.py asks it",
    r"sudo -u headgate bash$|set -a; ": "becomes the user of the service",
}
"""Lines that are not run, and why."""

RUN_BELOW = (
    r"(mkdir|openssl|echo|chmod|sudo chown|kubectl create secret) "
    r"|(rm -f|install -m 600|pg_dump|pg_restore|createdb) "  # test_operate.py
)


def lines():
    """Every line of a block of commands, and the commands within sentences."""
    within = re.findall(r"`(docker compose [^`]+)`", PAGE)
    found = [*BLOCKS, *pages.blocks(OPERATING)]
    return [*within, *(line for kind, text in found if kind == "sh" for line in text.splitlines())]


def block(start):
    """The block that has a line with this beginning."""
    (found,) = (text for _, text in BLOCKS if re.search(f"^{start}", text, re.MULTILINE))
    return found


def helped(words):
    """The command line knows the subcommand and its options."""
    options = {word for word in words if word.startswith("--")}
    names = [word for word in words[:2] if re.fullmatch(r"[a-z-]+", word) and word not in options]
    said = run(sys.executable, "-m", "bot", *names, "--help")
    assert all(option in said for option in options), words


def compose(words):
    """A compose command names a file that exists and a service of it."""
    _, file, verb, *rest = words
    assert (ROOT / file).is_file()
    services = composed(Path(file).stem)["services"]
    if verb == "exec":
        assert rest[0] in services
        if rest[1] == "headgate":
            helped(rest[2:])
    elif verb == "cp":
        assert rest[0].partition(":")[0] in services
    else:
        named = {word for word in rest if not word.startswith("--")}
        assert verb in ("up", "down", "logs")
        assert named <= services.keys()


@pytest.mark.parametrize("line", lines())
def test_every_command_is_run_or_checked_or_listed(line):
    words = shlex.split(line.partition(" > ")[0])
    if line.startswith("docker compose "):
        compose(words[2:])
    elif "bin/headgate " in line:
        helped(words[words.index("/opt/headgate/bin/headgate") + 1 :])
    elif line.startswith("headgate "):
        helped(shlex.split(line, comments=True)[1:])
    elif line.startswith("sudo install "):
        assert line.endswith(" /etc/headgate/headgate.env") or (ROOT / words[-2]).is_file()
    else:
        assert re.match("|".join([*NOT_RUN, RUN_BELOW]), line), line


def test_the_secrets_of_the_page_are_ones_that_the_service_takes(tmp_path):
    text = block("mkdir -m 700 secrets")
    kept = [line for line in text.splitlines() if re.match(r"mkdir|openssl|echo|chmod", line)]
    run("bash", "-ec", f"cd {tmp_path}\n" + "\n".join(kept))
    found = {path.name: path for path in (tmp_path / "secrets").iterdir()}
    found["github-app.env"] = Path()
    project = composed("postgres")
    folder = Path(next(iter(project["secrets"].values()))["file"]).parent
    assert folder == Path("/etc/headgate")
    assert {Path(each["file"]).name for each in project["secrets"].values()} == found.keys()
    del found["github-app.env"]
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o400}
    texts = {name: path.read_text().strip() for name, path in found.items()}
    settings.alone(secret_key=texts["secret-key"], database_url=texts["database-url"])
    assert f":{texts['postgres-password']}@postgres/" in texts["database-url"]
    assert "postgres" in project["services"]


def test_the_secret_of_the_page_has_the_files_that_the_pods_mount(tmp_path):
    needs("kubectl")
    text = block("kubectl create secret")
    kept = [line for line in text.splitlines() if re.match(r"openssl|echo", line)]
    (create,) = (line for line in text.splitlines() if line.startswith("kubectl create secret"))
    make = [*kept, "touch github-app.env", f"{create} --dry-run=client --output yaml"]
    made = yaml.safe_load(run("bash", "-ec", f"cd {tmp_path}\n" + "\n".join(make)))
    pod = resources("postgres")["Deployment"]["spec"]["template"]["spec"]
    (secret,) = (each["secret"] for each in pod["volumes"] if "secret" in each)
    assert secret["secretName"] == made["metadata"]["name"]
    asked = resources("postgres")["ConfigMap"]["data"]
    files = {Path(path).name for name, path in asked.items() if name.endswith("_FILE")}
    assert made["data"].keys() == files | {"github-app.env"}


@pytest.mark.parametrize("overlay", ["sqlite", "postgres"])
def test_a_folder_of_ones_own_renders_with_its_own_image_and_name(overlay, tmp_path):
    rendered(overlay)
    text = block(r"resources: \[headgate/").replace("kubernetes/sqlite", f"kubernetes/{overlay}")
    text = text.replace("queue.example.org", "queue.own.example")
    (tmp_path / "kustomization.yaml").write_text(text)
    shutil.copytree(ROOT / "deploy/kubernetes", tmp_path / "headgate/deploy/kubernetes")
    own = {each["kind"]: each for each in yaml.safe_load_all(run("kubectl", "kustomize", tmp_path))}
    (container,) = own["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.org/headgate:0.1.0"
    (reference,) = container["envFrom"]
    assert reference["configMapRef"]["name"] == own["ConfigMap"]["metadata"]["name"]
    given = own["ConfigMap"]["data"]
    assert given["HEADGATE_PUBLIC_URL"] == "https://queue.own.example"
    assert given["HEADGATE_DASHBOARD_AUTH"] == "github"
    assert "queue.example.org" not in yaml.safe_dump_all(own.values())


def test_the_settings_of_the_page_are_settings(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(block("HEADGATE_PUBLIC_URL="))
    found = settings.read()
    assert (found.public_url, found.dashboard_auth) == ("https://queue.example.org", "github")
    assert len(found.trusted_proxies) == 1


def test_prometheus_reads_the_configuration_of_the_page(tmp_path):
    needs("promtool")
    text = block("rule_files:").replace("/etc/prometheus", str(ROOT / "deploy/monitoring"))
    (tmp_path / "prometheus.yml").write_text(text)
    said = run("promtool", "check", "config", tmp_path / "prometheus.yml")
    assert "1 rule files found" in said


def test_the_page_installs_as_the_image_does():
    image = (ROOT / "deploy/Containerfile").read_text("utf-8")
    begun = "bin/pip install "
    installs = [line.partition(begun)[2] for line in lines() if begun in line]
    assert len(installs) == 2
    assert all(f"install --no-cache-dir {options}" in image for options in installs)


def test_every_block_is_of_a_kind_that_is_checked():
    assert sorted({kind for kind, _ in BLOCKS}) == ["sh", "yaml"]
    assert sum(kind == "yaml" for kind, _ in BLOCKS) == 2
