"""A plugin's authentication: headers whose values come from the environment."""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, TypeAlias, assert_never

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
# Headers that say how a request is framed or where it goes; RFC 9110 section 7.6.1 and 7.2.
_NOT_OURS: Final = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "te", "trailer",
     "upgrade", "proxy-authorization", "proxy-connection", "keep-alive", "expect", "cookie",
     "accept-encoding"}
)  # fmt: skip

Fill: TypeAlias = Callable[[str, str], str]  # a text with references, its key; the text to send


def from_environment(text: str) -> str:
    """Raises ValueError for a credential that is written into the file."""
    if not _REFERENCE.search(text):
        raise ValueError("must come from the environment, as ${NAME}")
    return text


def header_name(name: str) -> str:
    """Raises ValueError for an invalid header, or one of the request's own."""
    if _HEADER.fullmatch(name) is None:
        raise ValueError("a header's name has letters, digits and '-', at most 64")
    if name.lower() in _NOT_OURS:
        raise ValueError(f"{name} cannot be set by a plugin")
    return name


HeaderName = Annotated[str, AfterValidator(header_name)]
Referred = Annotated[str, AfterValidator(from_environment)]


class _Auth(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class BearerAuth(_Auth):
    """`Authorization: Bearer`."""

    type: Literal["bearer"]
    token: Referred


class BasicAuth(_Auth):
    """`Authorization: Basic` (RFC 7617). The user's name may be in the file."""

    type: Literal["basic"]
    user: str = Field(min_length=1, max_length=200, pattern=r"^[^:]*$")
    password: Referred


class HeaderAuth(_Auth):
    type: Literal["header"]
    name: HeaderName
    value: Referred


class HeadersAuth(_Auth):
    """Several headers, as an API key and an application key."""

    type: Literal["headers"]
    values: dict[HeaderName, Referred] = Field(min_length=1, max_length=10)


Auth: TypeAlias = Annotated[
    BearerAuth | BasicAuth | HeaderAuth | HeadersAuth, Field(discriminator="type")
]


def headers_of(auth: Auth, fill: Fill) -> Mapping[str, str]:
    """The headers to send. Raises what `fill` raises for a variable that is not set."""
    match auth:
        case BearerAuth(token=token):
            return {"Authorization": f"Bearer {fill(token, 'token')}"}
        case BasicAuth(user=user, password=password):
            pair = f"{fill(user, 'user')}:{fill(password, 'password')}"
            return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        case HeaderAuth(name=name, value=value):
            return {name: fill(value, "value")}
        case HeadersAuth(values=values):
            return {name: fill(value, "values") for name, value in values.items()}
        case _:
            assert_never(auth)


def references(auth: Auth) -> frozenset[str]:
    """The names of the environment that hold secrets."""
    match auth:
        case BearerAuth(token=text) | BasicAuth(password=text) | HeaderAuth(value=text):
            found = _REFERENCE.findall(text)
        case HeadersAuth(values=values):
            found = [name for text in values.values() for name in _REFERENCE.findall(text)]
        case _:
            assert_never(auth)
    return frozenset(found)


def filled(text: str, env: Mapping[str, str]) -> str:
    """With references replaced. Raises KeyError with the first name that is not set."""
    for name in _REFERENCE.findall(text):
        if not env.get(name, "").strip():
            raise KeyError(name)
    return _REFERENCE.sub(lambda match: env[match[1]].strip(), text)
