"""`make deploy-check`: the other files of deploy/, by the linters and programs that read them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.test_deployment import DEPLOY, ROOT

pytestmark = pytest.mark.deploy

TOOLS = ROOT / "build/deploy-tools"
COMPOSE = TOOLS / "debian/usr/libexec/docker/cli-plugins/docker-compose"
MOST_EXPOSED = "15"  # of 100; systemd itself calls 0 to 19 OK


def said(*command: str | Path, **variables: str) -> str:
    """What it prints; it must end well."""
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_the_dockerfile_has_no_finding() -> None:
    assert not said(TOOLS / "venv/bin/hadolint", DEPLOY / "Dockerfile")


def test_compose_reads_its_file() -> None:
    whole = yaml.safe_load(said(COMPOSE, "-f", DEPLOY / "compose.yaml", "config"))
    services = whole["services"]
    assert set(services) == {"database", "kortex", "question"}
    assert {port["host_ip"] for port in services["kortex"]["ports"]} == {"127.0.0.1"}
    assert services["kortex"]["read_only"] is True
    assert whole["networks"]["inside"]["internal"] is True


def test_systemd_accepts_the_unit_as_confined(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd/kortex.service").read_text()
    here = tmp_path / "kortex.service"
    here.write_text(unit.replace("/opt/kortex/bin/kortex", f"{sys.prefix}/bin/kortex"))
    assert not said("systemd-analyze", "verify", "--man=no", here)
    said("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", here)
