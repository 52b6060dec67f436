"""An alert for the demo: a script that sends what an Alertmanager would send."""

from datetime import UTC, datetime
from typing import Final

SCRIPT: Final = "alert.sh"
_TEXT: Final = """#!/bin/sh
# Fires the alert of the demo's incident: a thread in #incident-checkout, investigated at once.
# `sh {script} resolved` ends it.
status=${{1:-firing}}
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
case $status in firing) starts=$now ends=0001-01-01T00:00:00Z;; *) starts={began} ends=$now;; esac
curl -sS -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{{
  "version": "4", "groupKey": "demo", "alerts": [{{"status": "'"$status"'", "fingerprint": "demo",
  "labels": {{"alertname": "HighLatency", "service": "checkout", "severity": "critical"}},
  "annotations": {{"summary": "p99 of checkout is above 1 s"}},
  "startsAt": "'"$starts"'", "endsAt": "'"$ends"'"}}]}}' \\
  http://127.0.0.1:{port}/alerts/v1/alertmanager
echo
"""


def alert_script(port: int, token: str) -> str:
    """For `sh`, with curl. The token is the demo's own, good for this and nothing else."""
    began = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return _TEXT.format(script=SCRIPT, began=began, token=token, port=port)
