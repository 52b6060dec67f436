"""The sources of AWS credentials, with real botocore against fakes of AWS's own services."""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path

import pytest
from aiohttp import web

from adapters.aws import credentials
from adapters.aws.credentials import AwsCredentials, AwsKey
from adapters.errors import Refused, TimedOut
from adapters.http.egress import LocalHosts, confined_to
from adapters.llm.config import ProviderConfig
from adapters.llm.messages import ErrorChunk, ErrorKind
from adapters.llm.registry import create
from tests.fixtures_http import serving
from tests.fixtures_providers import ASKED
from tests.sources import ROOT

REGION = "eu-central-1"
SECRET = "found-secret-8Qz"
ROLE = "arn:aws:iam::123456789012:role/kortex"


@dataclass
class Services:
    """STS, SSO, ECS and the instance's metadata, on one address."""

    url: str = ""
    lasts: timedelta = timedelta(hours=6)
    silent: bool = False
    asked: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.silent:
            await asyncio.Event().wait()
        number = len(self.asked)
        until = f"{datetime.now(UTC) + self.lasts:%Y-%m-%dT%H:%M:%SZ}"
        match request.path:
            case "/latest/api/token":
                return web.Response(text="metadata-token")
            case "/latest/meta-data/iam/security-credentials/":
                return web.Response(text="kortex")
            case "/latest/meta-data/iam/security-credentials/kortex" | "/ecs":
                found = {"Code": "Success", "Expiration": until, "LastUpdated": until,
                         "AccessKeyId": f"FOUND{number}", "SecretAccessKey": SECRET,
                         "Token": "session"}  # fmt: skip
                return web.json_response(found)
            case "/federation/credentials":
                ends = int((datetime.now(UTC) + self.lasts).timestamp() * 1000)
                found = {"accessKeyId": f"FOUND{number}", "secretAccessKey": SECRET,
                         "sessionToken": "session"}  # fmt: skip
                return web.json_response({"roleCredentials": {**found, "expiration": ends}})
            case _:
                return web.Response(text=assumed(f"FOUND{number}", until), content_type="text/xml")


def assumed(key_id: str, until: str) -> str:
    """STS's answer to AssumeRoleWithWebIdentity."""
    key = (
        f"<AccessKeyId>{key_id}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
        f"<SessionToken>session</SessionToken><Expiration>{until}</Expiration>"
    )
    name = "AssumeRoleWithWebIdentity"
    return (
        f'<{name}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{name}Result>'
        f"<Credentials>{key}</Credentials></{name}Result></{name}Response>"
    )


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    made = Services()
    async with serving(made.handle) as url:
        made.url = url
        yield made


@dataclass
class Machine:
    """The environment and the files that botocore reads."""

    folder: Path
    env: Callable[[str, str], None]

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Without any credentials, and without an instance's metadata."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    made = Machine(tmp_path, monkeypatch.setenv)
    made.env("HOME", str(tmp_path))
    made.env("AWS_CONFIG_FILE", str(tmp_path / "config"))
    made.env("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    made.env("AWS_EC2_METADATA_DISABLED", "true")
    return made


def environment(machine: Machine, _services: Services) -> None:
    machine.env("AWS_ACCESS_KEY_ID", "FOUND0")
    machine.env("AWS_SECRET_ACCESS_KEY", SECRET)
    machine.env("AWS_SESSION_TOKEN", "session")


def profile(machine: Machine, _services: Services) -> None:
    keys = f"aws_access_key_id = FOUND0\naws_secret_access_key = {SECRET}\n"
    machine.file("credentials", f"[ops]\n{keys}aws_session_token = session\n")


def web_identity(machine: Machine, services: Services) -> None:
    machine.env("AWS_ENDPOINT_URL_STS", services.url)
    machine.env("AWS_ROLE_ARN", ROLE)
    machine.env("AWS_WEB_IDENTITY_TOKEN_FILE", machine.file("token", "projected-token"))


def container(machine: Machine, services: Services) -> None:
    machine.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{services.url}/ecs")


def instance(machine: Machine, services: Services) -> None:
    machine.env("AWS_EC2_METADATA_DISABLED", "false")
    machine.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", services.url)


def single_sign_on(machine: Machine, services: Services) -> None:
    machine.env("AWS_ENDPOINT_URL_SSO", services.url)
    start = "https://acme.awsapps.com/start"
    machine.file(
        "config",
        f"[profile ops]\nsso_start_url = {start}\nsso_region = {REGION}\n"
        "sso_account_id = 123456789012\nsso_role_name = ops\n",
    )
    until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    token = {"accessToken": "sso-token", "expiresAt": until, "startUrl": start, "region": REGION}
    cached = sha1(start.encode(), usedforsecurity=False).hexdigest()
    machine.file(f".aws/sso/cache/{cached}.json", json.dumps(token))


SOURCES = {
    "environment": (environment, ""),
    "profile": (profile, "ops"),
    "web identity (IRSA)": (web_identity, ""),
    "ECS": (container, ""),
    "instance role (IMDS)": (instance, ""),
}
LOOK_UP = f"""
import asyncio
from adapters.aws.credentials import AwsCredentials
found = asyncio.run(AwsCredentials({REGION!r}, profile="ops").key())
print(found.access_key_id, found.secret_access_key, found.session_token)
"""


@pytest.mark.parametrize("source", SOURCES)
async def test_credentials_are_found_where_aws_tools_look(
    services: Services, machine: Machine, source: str
) -> None:
    prepare, name = SOURCES[source]
    prepare(machine, services)

    found = await AwsCredentials(REGION, profile=name).key()

    assert found.access_key_id.startswith("FOUND")
    assert (found.secret_access_key, found.session_token) == (SECRET, "session")
    assert SECRET not in repr(found)


async def test_credentials_are_found_after_a_single_sign_on(
    services: Services, machine: Machine
) -> None:
    single_sign_on(machine, services)
    # botocore finds the home folder when it is imported.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LOOK_UP, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    found, _ = await process.communicate()

    assert re.fullmatch(f"FOUND\\d+ {SECRET} session\n", found.decode())


@pytest.mark.parametrize("source", SOURCES)
async def test_local_only_mode_looks_up_no_credentials(
    services: Services, machine: Machine, source: str
) -> None:
    prepare, name = SOURCES[source]
    prepare(machine, services)
    with confined_to(LocalHosts()), pytest.raises(Refused, match="local-only"):
        await AwsCredentials(REGION, profile=name).key()

    assert services.asked == []


async def test_configured_keys_are_used_in_local_only_mode(machine: Machine) -> None:
    environment(machine, Services())
    key = AwsKey("CONFIGURED", "secret")
    with confined_to(LocalHosts()):
        assert await AwsCredentials(REGION, key).key() == key


async def test_credentials_are_cached_and_refreshed_before_they_expire(
    services: Services, machine: Machine
) -> None:
    container(machine, services)
    lasting = AwsCredentials(REGION)
    kept = [await lasting.key(), await lasting.key()]
    services.lasts = timedelta(minutes=5)
    passing = AwsCredentials(REGION)
    renewed = [await passing.key(), await passing.key()]

    assert kept[0] == kept[1]
    assert renewed[0] != renewed[1]


async def test_a_silent_credential_source_times_out(
    services: Services, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LOOK_UP_S", 0.1)
    machine.env("AWS_METADATA_SERVICE_TIMEOUT", "1")
    services.silent = True
    instance(machine, services)
    looked = AwsCredentials(REGION)
    before = time.monotonic()
    with pytest.raises(TimedOut):
        await looked.key()

    assert time.monotonic() - before < 1.0
    assert looked.problem == "no AWS credentials within 0 s"


async def test_a_silent_credential_source_takes_one_thread_for_all_callers(
    services: Services, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LOOK_UP_S", 0.05)
    machine.env("AWS_METADATA_SERVICE_TIMEOUT", "30")
    services.silent = True
    instance(machine, services)
    looked = AwsCredentials(REGION)
    for _ in range(8):
        with pytest.raises(TimedOut):
            await looked.key()
    assert len(services.asked) <= 1


@pytest.mark.parametrize(
    ("prepare", "name", "why"),
    [
        (lambda _machine: None, "", "NoCredentialsError"),
        (lambda _machine: None, "missing", "ProfileNotFound"),
        (lambda m: m.file("config", "no = section"), "", "ConfigParseError"),
        (lambda m: (m.env("AWS_ROLE_ARN", ROLE), m.env("AWS_WEB_IDENTITY_TOKEN_FILE", "/none")),
         "", "FileNotFoundError"),
    ],
    ids=["none", "no such profile", "a broken file", "no token file"],
)  # fmt: skip
async def test_bedrock_without_credentials_is_unavailable_with_the_reason(
    machine: Machine, prepare: Callable[[Machine], object], name: str, why: str
) -> None:
    prepare(machine)
    extra = {"region": REGION, "profile": name}
    bedrock = create(ProviderConfig("bedrock", base_url="http://127.0.0.1:9", extra=extra))
    before = bedrock.unavailable_reason
    (chunk,) = [each async for each in bedrock.stream(ASKED)]
    await bedrock.aclose()

    assert before is None
    assert isinstance(chunk, ErrorChunk)
    assert (chunk.kind, chunk.message) == (
        ErrorKind.UNAVAILABLE,
        f"bedrock: no AWS credentials: {why}",
    )
    assert bedrock.unavailable_reason == f"no AWS credentials: {why}"
