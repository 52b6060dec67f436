"""How the API server is reached: from inside the cluster, or as a kubeconfig says.

Reads files, so it runs in a thread. Unverified TLS is not accepted: it would expose the cluster to
any machine in between.
"""

import base64
import json
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import yaml
from pydantic import BaseModel, Field, JsonValue, ValidationError

from adapters.kubernetes.exec_credentials import API_VERSIONS, Plugin, own_environment

# Where every pod finds its service account.
# https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER: Final = "https://kubernetes.default.svc"
_MAX_BYTES: Final = 1 << 20
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


class AccessInvalid(ValueError):
    """The configuration cannot be used; says why and what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """`token` reads the bearer token, which a cluster renews every hour; it may read a file.

    With `plugin`, a program is asked for credentials instead; `tls_as` is the trust with the client
    certificate and key that it gave, in PEM.
    """

    server: str
    tls: ssl.SSLContext | None
    token: Callable[[], str]
    namespace: str = "default"
    plugin: Plugin | None = None
    tls_as: Callable[[str, str], ssl.SSLContext] | None = None
    proxy: str = field(default="", repr=False)


class _Extension(BaseModel):
    name: str
    extension: JsonValue = None


class _Variable(BaseModel):
    name: str
    value: str = ""


class _Exec(BaseModel):
    version: str = Field(alias="apiVersion")
    command: str = Field(min_length=1)
    args: list[str] | None = None
    env: list[_Variable] | None = None
    interactive: str = Field(default="IfAvailable", alias="interactiveMode")
    told_cluster: bool = Field(default=False, alias="provideClusterInfo")


class _Cluster(BaseModel):
    server: str
    ca: str = Field(default="", alias="certificate-authority")
    ca_data: str = Field(default="", alias="certificate-authority-data")
    insecure: bool = Field(default=False, alias="insecure-skip-tls-verify")
    proxy: str = Field(default="", alias="proxy-url", pattern=r"^(http://[^\s/]+/?)?$")
    extensions: list[_Extension] = Field(default_factory=list)


class _User(BaseModel):
    token: str = ""
    token_file: str = Field(default="", alias="tokenFile")
    certificate: str = Field(default="", alias="client-certificate")
    certificate_data: str = Field(default="", alias="client-certificate-data")
    key: str = Field(default="", alias="client-key")
    key_data: str = Field(default="", alias="client-key-data")
    exec: _Exec | None = None
    auth_provider: object = Field(default=None, alias="auth-provider")
    username: str = ""


class _Context(BaseModel):
    cluster: str
    user: str = ""
    namespace: str = "default"


class _NamedCluster(BaseModel):
    name: str
    cluster: _Cluster


class _NamedUser(BaseModel):
    name: str
    user: _User = _User()


class _NamedContext(BaseModel):
    name: str
    context: _Context


class _Kubeconfig(BaseModel):
    current: str = Field(default="", alias="current-context")
    clusters: list[_NamedCluster] = Field(default_factory=list)
    users: list[_NamedUser] = Field(default_factory=list)
    contexts: list[_NamedContext] = Field(default_factory=list)


def in_cluster(folder: Path = SERVICE_ACCOUNT, server: str = IN_CLUSTER) -> Access:
    """The pod's own service account. Raises AccessInvalid outside a cluster."""
    try:
        tls = _tls(cafile=str(folder / "ca.crt"))
        namespace = (folder / "namespace").read_text().strip()
    except OSError as error:
        raise AccessInvalid("no service account here: not inside a cluster") from error
    return Access(server, tls, lambda: (folder / "token").read_text().strip(), namespace)


def from_kubeconfig(
    path: Path, context: str = "", environment: Mapping[str, str] | None = None
) -> Access:
    """The context of that name, else the current one. Raises AccessInvalid.

    `environment` is ours; what of it a program for credentials needs, it gets.
    """
    try:
        text = path.read_bytes()[:_MAX_BYTES]
        found = _Kubeconfig.model_validate(yaml.safe_load(text))
    except (OSError, yaml.YAMLError, ValidationError, RecursionError) as error:
        # The file holds credentials, so its content is not repeated.
        raise AccessInvalid(f"{path}: not a readable kubeconfig") from error
    wanted = context or found.current
    chosen = next((one.context for one in found.contexts if one.name == wanted), None)
    if chosen is None:
        raise AccessInvalid(f"{path}: no context {wanted!r}")
    cluster = next((one.cluster for one in found.clusters if one.name == chosen.cluster), None)
    if cluster is None:
        raise AccessInvalid(f"{path}: no cluster {chosen.cluster!r}")
    user = next((one.user for one in found.users if one.name == chosen.user), _User())
    _check(path, cluster, user)
    return Access(
        cluster.server,
        _tls_of(path, cluster, user),
        _token_of(path, user),
        chosen.namespace,
        _plugin(path, cluster, user.exec, environment or {}) if user.exec else None,
        lambda certificate, key: _tls_as(path, cluster, certificate, key),
        cluster.proxy,
    )


def _check(path: Path, cluster: _Cluster, user: _User) -> None:
    if cluster.insecure:
        raise AccessInvalid(f"{path}: insecure-skip-tls-verify is not accepted; name the authority")
    if user.auth_provider is not None or user.username:
        raise AccessInvalid(
            f"{path}: only tokens, client certificates and `exec` are used; make a service account with"
            " get and list, and put its token into the kubeconfig"
        )


def _plugin(path: Path, cluster: _Cluster, own: _Exec, environment: Mapping[str, str]) -> Plugin:
    if own.version not in API_VERSIONS:
        raise AccessInvalid(f"{path}: exec: apiVersion must be one of {', '.join(API_VERSIONS)}")
    if own.interactive == "Always":
        raise AccessInvalid(f"{path}: exec: interactive programs are not supported")
    # A name is looked for in PATH, anything else beside the kubeconfig, as kubectl does.
    beside = "/" in own.command
    command = str(path.parent / Path(own.command).expanduser()) if beside else own.command
    spec: dict[str, JsonValue] = {"interactive": False}
    if own.told_cluster:
        spec["cluster"] = _told(path, cluster)
    info = {"apiVersion": own.version, "kind": "ExecCredential", "spec": spec}
    env = {**own_environment(environment), **{one.name: one.value for one in own.env or ()}}
    return Plugin(command, tuple(own.args or ()), env, own.version, json.dumps(info))


def _told(path: Path, cluster: _Cluster) -> dict[str, JsonValue]:
    data = cluster.ca_data
    if cluster.ca and not data:
        try:
            data = base64.b64encode((path.parent / cluster.ca).read_bytes()[:_MAX_BYTES]).decode()
        except OSError as error:
            raise AccessInvalid(f"{path}: a certificate cannot be read") from error
    told: dict[str, JsonValue] = {"server": cluster.server}
    if data:
        told["certificate-authority-data"] = data
    own = [one.extension for one in cluster.extensions if one.name == _EXEC_EXTENSION]
    if own:
        told["config"] = own[0]
    return told


def _tls_as(path: Path, cluster: _Cluster, certificate: str, key: str) -> ssl.SSLContext:
    tls = _tls_of(path, cluster, _User())
    if not certificate:
        return tls
    try:
        _load_pair(tls, certificate.encode(), key.encode())
    except (OSError, ValueError) as error:
        raise AccessInvalid("the certificate that was given cannot be used") from error
    return tls


def _token_of(path: Path, user: _User) -> Callable[[], str]:
    if user.token_file:
        file = path.parent / user.token_file
        return lambda: file.read_text().strip()
    return lambda: user.token


def _tls_of(path: Path, cluster: _Cluster, user: _User) -> ssl.SSLContext:
    try:
        # Strictly: what decodes to nothing would fall back to everybody's authorities.
        data = cluster.ca_data
        authority = base64.b64decode(data, validate=True).decode() if data else None
        file = str(path.parent / cluster.ca) if cluster.ca else None
        tls = _tls(cafile=file, cadata=authority)
        if user.certificate_data and user.key_data:
            pair = (user.certificate_data, user.key_data)
            _load_pair(tls, *(base64.b64decode(part) for part in pair))
        elif user.certificate and user.key:
            own, key = path.parent / user.certificate, path.parent / user.key
            tls.load_cert_chain(own, key, password="")  # never prompts
    except (OSError, ValueError) as error:
        raise AccessInvalid(f"{path}: a certificate cannot be read") from error
    return tls


def _tls(cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    if cafile is None and cadata is None:
        return httpx.create_ssl_context(trust_env=False)
    return ssl.create_default_context(cafile=cafile, cadata=cadata)


def _load_pair(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL loads a pair from files only; this one is private and deleted at once."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        for part in (certificate, key):
            file.write(part + b"\n")
        file.flush()
        tls.load_cert_chain(file.name, password="")
