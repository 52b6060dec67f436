"""What holds for every test: a clean environment, no network but loopback, nothing blocks the loop."""

import atexit
import gc
import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

import certifi
import pytest
from blockbuster import BlockBuster
from hypothesis import settings
from pydantic import TypeAdapter

from adapters.recorded.simulator import requests
from adapters.recorded.simulator.requests import Request
from adapters.recorded.simulator.scenario import Fault
from tests.plain_logging import log_plainly, logging_as_it_is

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30  # what a container has there by default is 64 MB
_DAYS_OF_REQUESTS = 6000  # in minutes: three incidents' days and more, about 60 MB
_SCRUBBED = ("KORTEX_", "SLACK_", "ANTHROPIC_", "OPENAI_", "OLLAMA_")

# pydantic looks for its plugins on the disk once, which no event loop of a test may do.
TypeAdapter(int)


def _live_in_memory() -> None:
    """Thousands of databases are made, and none outlives its test: no disk is waited for."""
    if "TMPDIR" not in os.environ and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None


def _trust_one_authority() -> None:
    """No test meets a public certificate, and each HTTP client read all authorities for 20 ms."""
    roots = Path(certifi.where()).read_text(encoding="utf-8")
    end = "-----END CERTIFICATE-----"
    file = Path(tempfile.gettempdir(), f"kortex-authority-{os.getpid()}.pem")
    file.write_text(roots[: roots.index(end) + len(end)], encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(file)
    atexit.register(file.unlink, missing_ok=True)


if os.access(_MEMORY, os.W_OK):
    _live_in_memory()
log_plainly()
_trust_one_authority()
# A deadline would test how busy the machine is; pytest's own timeout ends what hangs.
# The suite draws the same examples each time, so that a commit is either right or wrong. `make fuzz` draws new ones.
settings.register_profile("kortex", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("kortex")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites golden files; review the diff."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What a collection makes lives to the end: the garbage collector looked at it for a tenth of a run."""
    gc.disable()
    yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that mostly wait for processes come first, so that one worker waits while others work.

    Behind them, and among themselves, they are in random order.
    """
    items.sort(key=lambda item: not item.path.stem.startswith("test_durability_"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_SCRUBBED) and not name.startswith("KORTEX_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Iterator[None]:
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0] if isinstance(address, tuple) else str(address)
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise AssertionError(f"a test tried to reach {host}")
        real(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_past_for_all_incidents() -> Iterator[None]:
    """What happened before a fault depends on seed and minute alone: hundreds of tests ask for the same."""
    simulate = requests.requests_in

    @lru_cache(maxsize=_DAYS_OF_REQUESTS)
    def before_any_fault(seed: str, minute: int) -> Sequence[Request]:
        return simulate(seed, minute, None)

    def requests_in(seed: str, minute: int, fault: Fault | None) -> Sequence[Request]:
        if fault is None or (minute + 1) * 60 <= fault.started_at.timestamp():
            return before_any_fault(seed, minute)
        return simulate(seed, minute, fault)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "requests_in", requests_in)
        yield


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A test that runs a command configures the process's log; the next one must not find that."""
    put_back = logging_as_it_is()
    yield
    put_back()


@pytest.fixture(autouse=True)
def _nothing_blocks_the_loop(request: pytest.FixtureRequest) -> Iterator[BlockBuster]:
    detector = _detector()
    if request.node.get_closest_marker("may_block_the_loop") is None:
        detector.activate()
    yield detector
    detector.deactivate()


@cache
def _detector() -> BlockBuster:
    """One for all tests: making one takes longer than most of them."""
    return BlockBuster(scanned_modules=["bot", "adapters", "tools"])
