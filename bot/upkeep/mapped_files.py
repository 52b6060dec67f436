"""Pages of libraries' files that a start has touched and a running bot does not use.

They stay in the kernel's cache, and come back from there at their next use, 64 kB at a time within
microseconds. Until then they count for whoever has mapped them, and the kernel takes what is mapped
back last: 13 MB of 22, most of it of libraries that do their work at a start.
"""

import ctypes
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_SMAPS: Final = Path("/proc/self/smaps")
_DONTNEED: Final = (
    4  # MADV_DONTNEED of linux/mman-common.h: a private page is read from its file again
)
# A private mapping of a file that cannot be written to now, and how much of it differs from the file
# (proc(5)): what the linker has filled in was written before, and would be lost.
_UNWRITTEN: Final = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ [1-9][0-9]* +/.*\n"
    rb"(?:[A-Z]\w+: .*\n)*?Anonymous: +0 kB$",
    re.MULTILINE,
)


def let_go() -> None:
    """Leave them to the kernel. Nothing where it does not tell what is mapped.

    Reads what is mapped, 10 ms: once a start is over.
    """
    with suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        for start, end in unwritten(_SMAPS.read_bytes()):
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONTNEED)


def unwritten(smaps: bytes) -> Iterator[tuple[int, int]]:
    """From where to where files are mapped of which this process holds no page of its own."""
    for found in _UNWRITTEN.finditer(smaps):
        yield int(found[1], 16), int(found[2], 16)
