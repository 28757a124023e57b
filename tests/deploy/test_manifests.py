"""Compose files, manifests and the unit: read by the tools that use them, and true to the code."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot import program, settings
from bot.cli.exits import Exit
from service.http.health import OPEN_ROUTES
from tests.deploy import containerfile
from tests.deploy.tools import composed, rendered, resources, run
from tests.harness.needs import DEPLOY_TOOLS, needs
from tests.tidy.tree import ROOT

UNIT = ROOT / "deploy/systemd/headgate.service"
KUBERNETES = "1.32"
EXPOSURE_MAX = 15
"""Of 100, in tenths of what `systemd-analyze security` prints; it calls up to 25 safe."""

USER = 10001


def test_hadolint_finds_nothing_in_the_containerfile():
    needs("deploy tools")
    run(DEPLOY_TOOLS / "bin/hadolint", containerfile.CONTAINERFILE)


def test_the_containerfile_installs_only_what_has_a_hash_on_our_list():
    steps = [rest for name, rest in containerfile.instructions() if name == "RUN"]
    (installs,) = (step for step in steps if "pip" in step)
    locked, own = re.findall(r"install ([^&]+)", installs)
    options = "--no-deps --require-hashes --only-binary :all: -r requirements/run.txt"
    assert locked.strip().endswith(options)
    assert own.strip().endswith("--no-deps --no-build-isolation .")


@pytest.mark.parametrize(("name", "many"), [("sqlite", 1), ("postgres", 2)])
def test_compose_runs_so_many_instances_without_rights_behind_a_proxy(name, many):
    project = composed(name)
    ours = {key: each for key, each in project["services"].items() if key.startswith("headgate")}
    assert len(ours) == many
    for each in ours.values():
        assert (each["read_only"], each["cap_drop"], each.get("ports")) == (True, ["ALL"], None)
        assert "/tmp" in each["tmpfs"]
    upstreams = project["services"]["proxy"]["environment"]["UPSTREAMS"]
    assert upstreams.split() == [f"{key}:{program.SERVICE_PORT}" for key in ours]
    health = project["services"]["proxy"]["environment"].get("HEALTH", "/healthz")
    assert health == ("/readyz" if many > 1 else "/healthz")
    (subnet,) = project["networks"]["default"]["ipam"]["config"]
    for each in ours.values():
        assert each["environment"]["HEADGATE_TRUSTED_PROXIES"] == subnet["subnet"]


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_manifests_are_valid(name, tmp_path):
    needs("deploy tools")
    file = tmp_path / "rendered.yaml"
    file.write_text(rendered(name), "utf-8")
    tool = DEPLOY_TOOLS / "bin/kubernetes-validate"
    run(sys.executable, tool, "--strict", "-k", KUBERNETES, file, PYTHONPATH=str(DEPLOY_TOOLS))


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_a_pod_has_no_rights_and_no_variables_of_the_kubelet(name):
    pod = resources(name)["Deployment"]["spec"]["template"]["spec"]
    assert (pod["enableServiceLinks"], pod["automountServiceAccountToken"]) == (False, False)
    secure = pod["securityContext"]
    assert (secure["runAsUser"], secure["runAsNonRoot"], secure["fsGroup"]) == (USER, True, USER)
    assert dict(containerfile.instructions())["USER"] == f"{USER}:{USER}"
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_probes_ask_what_answers_at_every_time(name):
    (container,) = resources(name)["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": program.SERVICE_PORT, "operators": 9642}
    probes = {key: each["httpGet"] for key, each in container.items() if key.endswith("Probe")}
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert {probe["path"] for probe in probes.values()} <= {route.path for route in OPEN_ROUTES}
    assert probes["readinessProbe"]["path"] == "/readyz"


def test_one_instance_ends_before_the_next_one_opens_its_file_and_is_reached_during_set_up():
    found = resources("sqlite")
    spec = found["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert spec["template"]["spec"]["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
    assert found["Service"]["spec"]["publishNotReadyAddresses"] is True
    assert "PodDisruptionBudget" not in found


def test_of_two_instances_one_always_serves():
    found = resources("postgres")
    spec = found["Deployment"]["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    budget = found["PodDisruptionBudget"]["spec"]
    assert (budget["maxUnavailable"], budget["selector"]) == (1, spec["selector"])
    assert "publishNotReadyAddresses" not in found["Service"]["spec"]


def environments():
    """The variables of a process by each way, and where its secrets are, by the names of files."""
    compose = composed("postgres")["services"]["headgate-1"]
    places = {each["source"]: each["target"] for each in compose["secrets"]}
    yield "compose", compose["environment"], places
    found = resources("postgres")
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    mounts = [each for each in container["volumeMounts"] if each["name"] == "secrets"]
    folder, file = (each["mountPath"] for each in mounts)
    secrets = {name: f"{folder}/{name}" for name in ("database-url", "secret-key")}
    yield "kubernetes", found["ConfigMap"]["data"], {**secrets, "github-app": file}


def test_the_service_reads_every_secret_from_a_file(tmp_path, monkeypatch):
    app = dict.fromkeys(settings.REGISTERED, "1") | {"github_host": "github.com"}
    app["public_url"] = "https://elsewhere.example.org"
    texts = {
        "database-url": "postgresql://headgate:secret@postgres/headgate",
        "secret-key": "k" * settings.SECRET_KEY_LENGTH_MIN,
        "github-app": "\n".join(f"HEADGATE_{name.upper()}={it}" for name, it in app.items()),
    }
    for way, environment, places in environments():
        for name in [name for name in os.environ if name.startswith("HEADGATE_")]:
            monkeypatch.delenv(name)
        for name, value in {**image_environment(), **environment}.items():
            within = value if not value.startswith(("/run", "/var")) else f"{tmp_path}/{way}{value}"
            monkeypatch.setenv(name, within)
        for name, place in places.items():
            path = Path(f"{tmp_path}/{way}{place}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[name])
            path.chmod(0o440)
        found = settings.read()
        assert found.database_address == texts["database-url"]
        assert found.secret_key == SecretStr(texts["secret-key"])
        assert (found.github_app_id, found.public_url) == ("1", "https://queue.example.org")


def image_environment():
    """The settings that the image itself has."""
    (line,) = (rest for name, rest in containerfile.instructions() if name == "ENV")
    pairs = dict(pair.split("=", 1) for pair in line.split())
    return {name: value for name, value in pairs.items() if name.startswith("HEADGATE_")}


def test_systemd_accepts_the_unit_and_finds_it_safe(tmp_path):
    needs("systemd")
    unit = tmp_path / UNIT.name
    shutil.copy(UNIT, unit)
    limit = f"--threshold={EXPOSURE_MAX}"
    run("systemd-analyze", "security", "--offline=true", limit, unit)
    # A program must be where the unit says.
    program_here = f"ExecStart={Path(sys.executable).parent}/headgate "
    text = unit.read_text("utf-8")
    unit.write_text(text.replace("ExecStart=/opt/headgate/bin/headgate ", program_here), "utf-8")
    assert program_here in unit.read_text("utf-8")
    run("systemd-analyze", "verify", "--man=no", unit)


def test_the_unit_names_settings_and_the_code_of_a_refused_start():
    text = UNIT.read_text("utf-8")
    names = {name.lower() for name in re.findall(r"HEADGATE_([A-Z_]+)=", text)}
    assert names <= settings.Settings.model_fields.keys()
    assert f"RestartPreventExitStatus={int(Exit.START_REFUSED)}" in text
