"""deploy/ and the product agree: versions, settings, what may be read, and where an image looks."""

import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import yaml

from adapters.kubernetes.kinds import KINDS
from bot.demo.running import AUDIT_KEY, DATABASE_URL, USUAL_PORT
from bot.settings.reading import parse

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/kortex"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What is read that has no kind of its own, or that no name of a kind leads to.
BESIDE_KINDS = {
    ("", "pods/log"),
    ("", "events"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
}

Rule = dict[str, Any]


def reads_of(rules: Iterable[Rule], verbs: Collection[str] = ()) -> set[tuple[str, str]]:
    """Group and resource of each rule; with `verbs` of those alone that have no other."""
    return {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if not verbs or set(rule["verbs"]) <= set(verbs)
    }


def rules_of_chart() -> list[Rule]:
    """As the template writes them: those of every namespace, and those of the cluster."""
    template = (CHART / "templates/rbac.yaml").read_text(encoding="utf-8")
    return [
        yaml.safe_load(re.sub(r"\n\s+", "\n  ", one))[0]
        for one in re.findall(r"- apiGroups: .*\n\s+resources: .*\n\s+verbs: .*", template)
    ]


def test_the_versions_agree() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert chart["appVersion"] == PROJECT["version"]
    assert f"image: kortex:{PROJECT['version']}\n" in compose
    assert f"ARG VERSION={PROJECT['version']}\n" in dockerfile


def test_the_charts_configuration_is_valid() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    named = {
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_APP_TOKEN": "xapp-1",
        "KORTEX_DATABASE_URL": "postgresql+asyncpg://kortex@database/kortex",
        "KORTEX_AUDIT_KEY": "5d" * 32,
    }
    settings = parse(values["config"], "values.yaml", named)
    assert settings.http.port == values["http"]["port"]
    assert settings.http.host == "0.0.0.0"


def test_the_chart_grants_exactly_what_the_tools_read() -> None:
    # Of a path, `api/v1` or `apis/apps/v1`.
    kinds = {("".join(kind.group.split("/")[1:-1]), kind.plural) for kind in KINDS}
    rules = rules_of_chart()
    assert reads_of(rules) == kinds | BESIDE_KINDS
    assert reads_of(rules, verbs={"get", "list"}) == reads_of(rules)


def test_compose_names_the_demos_variables() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    kortex = compose["services"]["kortex"]
    assert {DATABASE_URL, AUDIT_KEY} <= kortex["environment"].keys()
    assert kortex["ports"] == [f"127.0.0.1:{USUAL_PORT}:{USUAL_PORT}"]


def test_the_image_is_built_of_existing_files() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    copied = [
        source
        for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", dockerfile)
        for source in line.split()[:-1]
    ]
    kept = re.findall(r"(?m)^!(.*)$", ignored)
    assert [one for one in copied if not (ROOT / one).exists()] == []
    assert [one for one in copied if not one.startswith(tuple(kept))] == []
    extras = PROJECT["optional-dependencies"]
    assert [extra for extra in extras if not (ROOT / f"requirements/{extra}.lock").exists()] == []
