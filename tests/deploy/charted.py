"""The chart as Helm renders it: by Helm's own library, in the environment of `make deploy-check`."""

import subprocess
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.unit.test_deployment import CHART, ROOT

HELM = ROOT / "build/deploy-tools/venv/bin/python"
# Helm's library belongs to no lock of ours. Lists what it renders, or says why it does not.
RENDER = """
import json, sys
import helm_python as helm
with helm.Chart.load(sys.argv[1]) as chart:
    values = json.loads(sys.argv[2])
    try:
        chart.validate_schema(values)
        made = chart.render(values, name="kortex", namespace="ops")
    except helm.HelmError as error:
        sys.exit(str(error))
told = [text for path, text in made.items() if path.endswith(".yaml")]
json.dump({"lint": helm.lint(sys.argv[1])["errors"], "told": told}, sys.stdout)
"""

Object = dict[str, Any]


class Refused(Exception):
    """Helm does not render these values; the message is Helm's."""


def rendered(values: Object) -> list[Object]:
    """Every object of the chart with these values over its own. Raises Refused."""
    command: list[str | Path] = [HELM, "-c", RENDER, CHART, orjson.dumps(values).decode()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Refused(ended.stderr)
    told = orjson.loads(ended.stdout)
    assert told["lint"] == []
    documents = [one for text in told["told"] for one in yaml.safe_load_all(text)]
    return [one for one in documents if isinstance(one, dict) and "kind" in one]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Those of one kind."""
    return [one for one in objects if one["kind"] == kind]
