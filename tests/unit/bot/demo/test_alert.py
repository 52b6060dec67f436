"""The demo's script says what an Alertmanager would: one alert that fires and ends."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.alerts.alertmanager import GroupWire
from bot.demo.setup import alert_script
from bot.domain.alerts import AlertState

CURL = '#!/bin/sh\nfor each in "$@"; do case $each in "{"*) printf %s "$each";; esac; done\n'


@pytest.mark.parametrize("state", AlertState)
def test_the_script_sends_one_alert(tmp_path: Path, state: AlertState) -> None:
    (tmp_path / "curl").write_text(CURL)
    (tmp_path / "curl").chmod(0o700)
    (tmp_path / "alert.sh").write_text(alert_script(8080, "the-token"))
    path = f"{tmp_path}:{os.defpath}"
    command = ["sh", str(tmp_path / "alert.sh"), state.value]
    sent = subprocess.run(command, env={"PATH": path}, capture_output=True, check=True).stdout

    now = datetime.now(UTC)
    (alert,) = GroupWire("alertmanager", "x").read({}, sent, now)

    assert (alert.state, alert.labels["service"]) == (state, "checkout")
    assert now - alert.changed_at < timedelta(minutes=1)
