"""The image, built by its own Dockerfile without an engine, and its programs as an engine would start them."""

import asyncio
import os
import stat
import subprocess
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
BUILDAH = (
    "buildah", "--root", str(WORK / "storage"), "--runroot", str(WORK / "run"), "--storage-driver", "vfs",
)  # fmt: skip
BASE, IMAGE = "localhost/kortex-base", "localhost/kortex"
# What the base may bring beyond Debian's own: the CAs of this machine, for those behind a proxy.
OWN_CAS = (
    'mkdir -p "$1/usr/local/share/ca-certificates"; '
    'cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true'
)
# A read-only root, a fresh /tmp, uid 65532 without a capability: as the chart and compose.yaml ask for it.
CONFINED = """
root=$1; config=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/tmp"
mount -t tmpfs -o mode=1777,size=1m tmpfs "$root/run"
mount --bind "$config" "$root/etc/kortex"
mount -o remount,bind,ro "$root/etc/kortex"
exec /usr/bin/setpriv --no-new-privs /usr/sbin/chroot --userspec=65532:65532 --groups= "$root" "$@"
"""

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
            f"--setup-hook={OWN_CAS}", "trixie", archive,
        )  # fmt: skip
        container = _ran(*BUILDAH, "from", "scratch").strip()
        _ran(*BUILDAH, "add", container, archive, "/")
        _ran(*BUILDAH, "commit", container, BASE)
        _ran(*BUILDAH, "rm", container)
        Path(archive).unlink()
    return BASE


def _ran(*command: str) -> str:
    ended = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{command[:9]}: {ended.stderr[-4000:]}"
    return ended.stdout


@pytest.fixture
def started(image: Image, tmp_path: Path) -> Start:
    """Start a program of the image, confined; it is killed when the context ends before it does.

    What `tmp_path` holds is its /etc/kortex. It hears of no variable but the image's and those given.
    """
    environment = dict(each.split("=", 1) for each in image.config["Env"])

    @asynccontextmanager
    async def start(*command: str, **variables: str) -> AsyncIterator[Process]:
        program = await asyncio.create_subprocess_exec(
            "unshare", "--mount", "/bin/sh", "-euc", CONFINED, "sh", image.root, tmp_path, *command,
            stdout=PIPE, stderr=PIPE, env={**environment, **variables},
        )  # fmt: skip
        try:
            yield program
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()

    return start
