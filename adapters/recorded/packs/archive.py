"""The files of recorded cases, out of folders and `.tar.xz` archives, one case at a time.

Packs come from elsewhere: no name in one says where anything is written, no link is followed, and
sizes are bounded.
"""

import lzma
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

CASE_FILE: Final = "case.json"
TRUTH_FILE: Final = "truth.json"
METRICS_FILE: Final = "metrics.ndjson"
LOGS_FILE: Final = "logs.ndjson"
TRACES_FILE: Final = "traces.ndjson"
GRAPH_FILE: Final = "graph.json"
CLUSTER_FILE: Final = "kubernetes.json"
DEPLOYS_FILE: Final = "deploys.json"
FEEDBACK_FILE: Final = "feedback.json"  # for people who fill in the truth; not read
_FILES: Final = frozenset(
    {CASE_FILE, TRUTH_FILE, METRICS_FILE, LOGS_FILE, TRACES_FILE, GRAPH_FILE, CLUSTER_FILE}
    | {DEPLOYS_FILE}
)
_ARCHIVES: Final = (".tar.xz", ".tar.gz", ".tgz", ".tar")
MAX_CASE_BYTES: Final = 256 << 20  # the largest of the public ones has 14 MB


class BadPack(Exception):
    """A pack cannot be read; the text says which and why."""


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files of one case by name. `place` is where they are, for messages."""

    place: str
    files: Mapping[str, bytes]


def case_files(paths: Sequence[Path]) -> Iterator[CaseFiles]:
    """Every case below these folders, in archives of them or beside. Raises BadPack."""
    for path in paths:
        found = 0
        for case in _in_folder(path) if path.is_dir() else _in_archive(path):
            found += 1
            yield case
        if not found:
            raise BadPack(f"{path}: holds no case ({CASE_FILE} with the files of one beside it)")


def _in_folder(path: Path) -> Iterator[CaseFiles]:
    try:
        for file in sorted(path.rglob(CASE_FILE)):
            yield CaseFiles(str(file.parent), _unwrapped(file))
        archives = sorted(one for one in path.iterdir() if one.name.endswith(_ARCHIVES))
    except OSError as error:
        raise BadPack(f"{path}: {error.strerror or error}") from error
    for archive in archives:
        yield from _in_archive(archive)


def _unwrapped(case: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size = 0
    for one in sorted(case.parent.iterdir()):
        if one.name not in _FILES:
            continue
        if one.is_symlink() or not one.is_file():
            raise BadPack(f"{one}: not a file; a case holds only files, not links")
        size += one.stat().st_size
        _check_size(size, str(case.parent))
        files[one.name] = one.read_bytes()
    return files


def _in_archive(path: Path) -> Iterator[CaseFiles]:
    """Files of cases lie in an archive in any order: they are put apart on disk, a folder a case."""
    with tempfile.TemporaryDirectory(prefix="kortex-pack-") as apart:
        folders = _put_apart(path, Path(apart))
        for folder, place in sorted(folders.items()):
            if (place / CASE_FILE).exists():
                beside = {one.name: one.read_bytes() for one in sorted(place.iterdir())}
                yield CaseFiles(f"{path}:{folder}", beside)


def _put_apart(path: Path, apart: Path) -> Mapping[PurePosixPath, Path]:
    """Only files of the known names, into folders of numbers: nothing in the archive says where."""
    places: dict[PurePosixPath, Path] = {}
    sizes: dict[PurePosixPath, int] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = _checked(path, member)
                opened = archive.extractfile(member) if name.name in _FILES else None
                if opened is None:
                    continue
                sizes[name.parent] = sizes.get(name.parent, 0) + member.size
                _check_size(sizes[name.parent], f"{path}:{name.parent}")
                place = places.setdefault(name.parent, apart / str(len(places)))
                place.mkdir(exist_ok=True)
                if (place / name.name).exists():
                    raise BadPack(f"{path}: {name} is in it twice")
                with (place / name.name).open("wb") as kept:
                    shutil.copyfileobj(opened, kept)
    except (OSError, EOFError, ValueError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise BadPack(f"{path}: neither a folder nor an archive of cases ({error})") from error
    return places


def _checked(path: Path, member: tarfile.TarInfo) -> PurePosixPath:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise BadPack(f"{path}: {member.name!r} leaves the archive's own folder")
    if not (member.isfile() or member.isdir()):
        raise BadPack(f"{path}: {member.name!r} is a link or a device; a pack holds files alone")
    return name


def _check_size(size: int, place: str) -> None:
    if size > MAX_CASE_BYTES:
        raise BadPack(f"{place}: is larger than {MAX_CASE_BYTES >> 20} MiB")
