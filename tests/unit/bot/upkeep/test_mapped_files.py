"""Pages of files go back to the kernel, and none that differs from its file."""

import subprocess
import sys
from pathlib import Path

import pytest

from bot.upkeep import mapped_files
from bot.upkeep.mapped_files import unwritten
from tests.sources import ROOT

MAPPING = b"""\
Size:                  8 kB
Rss:                   8 kB
Private_Dirty:         0 kB
Anonymous:            %4d kB
KSM:                   0 kB
THPeligible:           0
VmFlags: rd mr mw me
"""
# As a library's parts are mapped, a private page of its own among them, and the kernel's.
SMAPS = b"".join(
    head + b"\n" + MAPPING % own
    for head, own in (
        (b"1000-2000 r--p 00000000 fe:00 260386 /usr/lib/a.so", 0),
        (b"2000-3000 r-xp 00001000 fe:00 260386 /usr/lib/a.so", 0),
        (b"3000-4000 r--p 00002000 fe:00 260386 /usr/lib/a.so", 4),  # the linker has written there
        (b"4000-5000 rw-p 00003000 fe:00 260386 /usr/lib/a.so", 0),
        (b"5000-6000 r--s 00000000 fe:00 260387 /var/lib/kortex.db-shm", 0),
        (b"6000-7000 r--p 00000000 00:00 0 ", 0),
        (b"7000-8000 r--p 00000000 00:00 0                          [vvar]", 0),
        (b"8000-9000 ---p 00000000 fe:00 260386 /usr/lib/a.so", 0),
        (b"9000-a000 r-xp 00000000 fe:00 260388 /usr/lib/gone.so (deleted)", 0),
        (b"a000-b000 r-xp 00000000 fe:00 260386 /usr/lib/Anonymous:            0 kB", 4),
        (b"c000-d000 rwxp 00000000 fe:00 260386 /usr/lib/a.so", 0),
    )
)
# Has read all that its library of numbers and text consists of, and needs it afterwards.
LET_GO = """
import decimal, unicodedata
from pathlib import Path
from bot.upkeep.mapped_files import let_go, unwritten
from tests.unit.bot.upkeep.test_mapped_files import of_files
smaps = Path("/proc/self/smaps").read_bytes()
import ctypes
for start, end in unwritten(smaps):
    ctypes.string_at(start, end - start)
before = of_files()
let_go()
after = of_files()
total = sum(decimal.Decimal(ord(unicodedata.normalize("NFD", "é")[0])) for _ in range(100))
print(before, after, total)
"""

linux = pytest.mark.skipif(
    not Path("/proc/self/smaps").exists(), reason="the kernel tells what is mapped"
)


def of_files() -> int:
    """kB of files that count for this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssFile:")[2].split()[0])


def test_only_private_pages_that_nobody_wrote_to_are_named() -> None:
    assert list(unwritten(SMAPS)) == [(0x1000, 0x2000), (0x2000, 0x3000), (0x9000, 0xA000)]


def test_what_is_cut_off_is_not_named() -> None:
    # Up to the last letter of what says that no page is of its own.
    ends = [
        at for at in range(len(SMAPS)) if SMAPS[:at].count(b"Anonymous:               0 kB") == 0
    ]

    assert [list(unwritten(SMAPS[:end])) for end in ends] == [[]] * len(ends)


@linux
def test_a_process_goes_on_with_less() -> None:
    told = subprocess.run(
        [sys.executable, "-c", LET_GO], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()

    before, after, total = map(int, told)
    assert after < before - 4_000
    assert total == 100 * ord("e")


def test_nothing_is_done_where_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_files, "_SMAPS", tmp_path / "none")

    mapped_files.let_go()
