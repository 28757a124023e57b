"""nginx and Caddy as processes on this machine, with the configurations of `deploy/proxy`."""

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from service.clock import SystemClock
from tests.harness.machine import free_port
from tests.tidy.tree import ROOT

CONFIGURED = ROOT / "deploy/proxy"
UP_WITHIN_S = 120.0
"""Caddy cleans its folder at a start, the half-made certificate too, and tries again after 60 s."""

LOOK_EVERY_S = 0.05

# What an installed nginx has around our file; everything it writes is in the test's folder.
AROUND_NGINX = """\
daemon off;
{user}
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/none;
    uwsgi_temp_path {folder}/none;
    scgi_temp_path {folder}/none;
    include {folder}/headgate.conf;
}}
"""

# Its own certificates, and no port 80.
AROUND_CADDY = """\
{{
    admin off
    local_certs
    skip_install_trust
    auto_https disable_redirects
    storage file_system {folder}
}}
import {configured}/Caddyfile
"""


@contextmanager
def running(name: str, folder: Path, port: int, upstream: int) -> Iterator[None]:
    """A proxy that serves `https://localhost:port` until the block ends."""
    folder.mkdir()
    command = {"nginx": _nginx, "caddy": _caddy}[name](folder, port, upstream)
    environment = {
        **os.environ,
        "HOME": str(folder),
        "SITE": f"localhost:{port}",
        "UPSTREAMS": f"127.0.0.1:{upstream}",
        "HEALTH": "/readyz",
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        clock = SystemClock()
        deadline = clock.monotonic_s() + UP_WITHIN_S
        while not _listens(port):
            said = (folder / "log").read_text()
            assert process.poll() is None, said
            assert clock.monotonic_s() < deadline, said
        yield
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    """Return whether it has a certificate, too: Caddy makes its own only after it listens."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=LOOK_EVERY_S) as opened,
        anybody.wrap_socket(opened, server_hostname="localhost"),
    ):
        return True
    return False


def _nginx(folder: Path, port: int, upstream: int) -> list[str]:
    """Only ports, name and files differ from what is in the repository."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *files], check=True, capture_output=True)
    text = (CONFIGURED / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
        ("server 127.0.0.1:8642;", f"server 127.0.0.1:{upstream};"),
        ("/etc/ssl/queue.example.org.crt", str(certificate)),
        ("/etc/ssl/queue.example.org.key", str(key)),
        ("server_name queue.example.org;", "server_name localhost;"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "headgate.conf").write_text(text, "utf-8")
    user = "user root;" if os.geteuid() == 0 else ""
    around = folder / "nginx.conf"
    around.write_text(AROUND_NGINX.format(folder=folder, user=user), "utf-8")
    return ["nginx", "-e", "stderr", "-c", str(around)]


def _caddy(folder: Path, _port: int, _upstream: int) -> list[str]:
    around = folder / "Caddyfile"
    around.write_text(AROUND_CADDY.format(folder=folder, configured=CONFIGURED), "utf-8")
    return ["caddy", "run", "--config", str(around), "--adapter", "caddyfile"]
