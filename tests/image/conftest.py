"""The image, built by its own Dockerfile on a Debian made here, and containers of it."""

import asyncio
import os
import stat
import subprocess
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from blockbuster import BlockBuster

CHECKOUT = Path(__file__).parents[2]
WORK = CHECKOUT / "build/image"
STORAGE = (
    "--root",
    str(WORK / "storage"),
    "--runroot",
    str(WORK / "run"),
    "--storage-driver",
    "vfs",
)
BUILDAH = ("buildah", *STORAGE)
# Without systemd, and on any version of control groups.
ENGINE = ("podman", *STORAGE, "--cgroup-manager", "cgroupfs", "--runtime", "runc")
BASE, IMAGE = "localhost/kortex-base", "localhost/kortex"
# What the base may bring beyond Debian's own: the CAs of this machine, for those behind a proxy.
OWN_CAS = (
    'mkdir -p "$1/usr/local/share/ca-certificates"; '
    'cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true'
)
# As the chart and compose.yaml ask for it: a read-only root, a small /tmp, no capability. The limits are
# below what an engine would set, which it may not where it runs inside another.
CONFINED = (
    "--read-only", "--tmpfs", "/tmp:size=64m", "--cap-drop", "all", "--security-opt", "no-new-privileges",
    "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512", "--network", "host", "--no-healthcheck",
)  # fmt: skip

Start = Callable[..., AbstractAsyncContextManager[Process]]


@pytest.fixture(autouse=True)
def of_other_programs(_nothing_blocks_the_loop: BlockBuster) -> None:
    """What is looked at here runs elsewhere: the test's own loop may wait for it."""
    _nothing_blocks_the_loop.deactivate()


@dataclass(frozen=True, slots=True)
class Image:
    """`root` is its file system; `config` what an engine reads: User, Env, Labels, Entrypoint, ..."""

    root: Path
    config: dict[str, Any]

    @property
    def size(self) -> int:
        """Bytes as an engine counts them: of the layers' archives, in blocks of 512 with a header each."""
        files = [path.lstat() for path in self.root.rglob("*")]
        sizes = [file.st_size if stat.S_ISREG(file.st_mode) else 0 for file in files]
        return sum(512 + -(-size // 512) * 512 for size in sizes)


@pytest.fixture(scope="session")
def image() -> Iterator[Image]:
    """Built from this checkout; KORTEX_IMAGE_BASE is a Debian to build on instead of one made here."""
    base = os.environ.get("KORTEX_IMAGE_BASE") or _base()
    _ran(
        *BUILDAH, "build", "--format", "docker", "--isolation", "chroot", "--network", "host",
        "--ignorefile", "deploy/Dockerfile.dockerignore", "--file", "deploy/Dockerfile",
        "--build-arg", f"DEBIAN={base}", "--build-arg", f"EXTRAS={os.environ.get('EXTRAS', '')}",
        "--build-arg", "REVISION=checked", "--tag", IMAGE, ".",
    )  # fmt: skip
    config = orjson.loads(_ran(*BUILDAH, "inspect", "--type", "image", IMAGE))["Docker"]["config"]
    container = _ran(*BUILDAH, "from", IMAGE).strip()
    try:
        yield Image(Path(_ran(*BUILDAH, "mount", container).strip()), config)
    finally:
        _ran(*BUILDAH, "rm", container)


def _base() -> str:
    """Debian's own packages, without what only an engine could fetch."""
    if subprocess.run(
        [*BUILDAH, "inspect", "--type", "image", BASE], check=False, capture_output=True
    ).returncode:
        WORK.mkdir(parents=True, exist_ok=True)
        archive = str(WORK / "base.tar")
        _ran(
            "mmdebstrap", "--variant=minbase", "--mode=root", "--quiet", "--include=ca-certificates",
            f"--setup-hook={OWN_CAS}", "trixie", archive, _archive(),
        )  # fmt: skip
        container = _ran(*BUILDAH, "from", "scratch").strip()
        _ran(*BUILDAH, "add", container, archive, "/")
        _ran(*BUILDAH, "commit", container, BASE)
        _ran(*BUILDAH, "rm", container)
        Path(archive).unlink()
    return BASE


def _archive() -> str:
    """Where this machine's own packages come from."""
    told = _ran("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    return next(each for each in told.split() if "security" not in each)


def _ran(*command: str) -> str:
    ended = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{command[:9]}: {ended.stderr[-4000:]}"
    return ended.stdout


@pytest.fixture
def started(image: Image, tmp_path: Path) -> Start:
    """Run the image, with a command instead of its own where one is given; removed when the context ends.

    What `tmp_path` holds is its /etc/kortex. It hears of no variable but the image's and those given.
    """
    tmp_path.chmod(0o755)

    @asynccontextmanager
    async def start(*command: str, **variables: str) -> AsyncIterator[Process]:
        name = f"kortex-check-{uuid.uuid4().hex}"
        told = [part for key, value in variables.items() for part in ("--env", f"{key}={value}")]
        instead = ["--entrypoint", orjson.dumps(command).decode()] if command else []
        program = await asyncio.create_subprocess_exec(
            *ENGINE, "run", "--rm", "--name", name, *CONFINED, *told, *instead,
            "--volume", f"{tmp_path}:/etc/kortex:ro", IMAGE,
            stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        try:
            yield program
        finally:
            if program.returncode is None:
                await asyncio.to_thread(_ran, *ENGINE, "rm", "--force", "--time", "0", name)
                await program.wait()

    return start
