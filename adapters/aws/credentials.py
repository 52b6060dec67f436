"""The AWS identity: configured keys, or what botocore finds (the extra `kortex[aws]`).

botocore looks where AWS's own tools do: environment, profiles, SSO, web identity (IRSA), ECS,
instance roles (IMDS). It opens connections of its own, past the egress guard, and may run a
profile's `credential_process`. So in local-only mode only configured keys are used.
"""

import asyncio
import time
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from adapters.errors import AdapterError, Refused, TimedOut
from adapters.http.egress import is_confined

if TYPE_CHECKING:
    from botocore.session import Session

LOOK_UP_S: Final = 10.0
# Of each request that botocore makes: to STS, SSO.
CONNECT_S: Final = 2.0
READ_S: Final = 4.0
ATTEMPTS: Final = 2
UNAVAILABLE_S: Final = 60.0  # how long a failed look-up counts; it is tried again then
MISSING: Final = "the extra kortex[aws] is not installed; run `make setup-aws`"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """A pair of access keys; `session_token` only with temporary ones."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


class AwsCredentials:
    """The signing keys. Keys found by botocore are refreshed before they expire."""

    def __init__(self, region: str, key: AwsKey | None = None, profile: str = "") -> None:
        """`key` is a configured one. Without it botocore looks, in `profile` where one is named."""
        self._region = region
        self._key = key
        self._profile = profile
        self._session: Session | None = None
        self._looking: asyncio.Future[AwsKey] | None = None
        self._is_loaded = False
        self._problem = "" if find_spec("botocore") else MISSING
        self._problem_until = float("inf") if self._problem else 0.0

    @property
    def problem(self) -> str | None:
        """Why AWS cannot be asked now: a missing extra, or the last look-up's failure."""
        return self._problem if time.monotonic() < self._problem_until else None

    async def load(self) -> None:
        """Import what of botocore signs and decodes, in a thread: it takes a tenth of a second."""
        if not self._is_loaded:
            for name in ("botocore.auth", "botocore.eventstream", "botocore.session"):
                await asyncio.to_thread(import_module, name)
            self._is_loaded = True

    async def key(self) -> AwsKey:
        """The keys for one request, looked up in a thread. Raises AdapterError."""
        await self.load()
        if self._key is not None:
            return self._key
        try:
            return await self._found()
        except AdapterError as error:
            self._problem = error.message
            self._problem_until = time.monotonic() + UNAVAILABLE_S
            raise

    async def _found(self) -> AwsKey:
        if is_confined():
            raise Refused("AWS credentials are not looked up in local-only mode; configure keys")
        # One look-up at a time: it goes on behind its deadline, and would take thread after thread.
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().run_in_executor(None, self._look_up)
            self._looking.add_done_callback(lambda each: each.cancelled() or each.exception())
        try:
            async with asyncio.timeout(LOOK_UP_S):
                return await asyncio.shield(self._looking)
        except TimeoutError as error:
            raise TimedOut(f"no AWS credentials within {LOOK_UP_S:.0f} s") from error

    def _look_up(self) -> AwsKey:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self._frozen()
        # Further errors of its sources: a missing token file, an answer that is not JSON.
        except (BotoCoreError, ClientError, OSError, RuntimeError, ValueError, KeyError) as error:
            raise Refused(f"no AWS credentials: {type(error).__name__}") from error

    def _frozen(self) -> AwsKey:
        from botocore.config import Config
        from botocore.exceptions import NoCredentialsError
        from botocore.session import Session

        if self._session is None:
            session = Session(profile=self._profile or None)
            session.set_config_variable("region", self._region)
            session.set_default_client_config(
                Config(
                    connect_timeout=CONNECT_S,
                    read_timeout=READ_S,
                    retries={"total_max_attempts": ATTEMPTS},
                )
            )
            self._session = session
        found = self._session.get_credentials()
        if found is None:
            raise NoCredentialsError
        frozen = found.get_frozen_credentials()
        return AwsKey(frozen.access_key or "", frozen.secret_key or "", frozen.token or "")
