"""The files of recorded cases, out of folders and `.tar.xz` archives, one case at a time."""

import lzma
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

CASE_FILE: Final = "case.json"
TRUTH_FILE: Final = "truth.json"
_MAX_CASE_BYTES: Final = 1 << 30  # of one case, so that a crafted archive cannot fill the memory


class BadPack(Exception):
    """A pack cannot be read; the text says which and why."""


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files of one case by name. `place` is where they are, for messages."""

    place: str
    files: Mapping[str, bytes]


def case_files(paths: Sequence[Path]) -> Iterator[CaseFiles]:
    """Every case below these folders and archives. Raises BadPack."""
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
            beside = sorted(one for one in file.parent.iterdir() if one.is_file())
            yield CaseFiles(str(file.parent), {one.name: one.read_bytes() for one in beside})
    except OSError as error:
        raise BadPack(f"{path}: {error.strerror or error}") from error


def _in_archive(path: Path) -> Iterator[CaseFiles]:
    """Archives written case by case are read so; a case is given once the next one begins."""
    given: set[PurePosixPath] = set()
    folder, files, size = PurePosixPath(), dict[str, bytes](), 0
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                opened = archive.extractfile(member) if member.isfile() else None
                if opened is None:
                    continue
                if name.parent != folder:
                    if CASE_FILE in files:
                        yield CaseFiles(f"{path}:{folder}", files)
                    given.add(folder)
                    folder, files, size = name.parent, {}, 0
                    if folder in given:
                        raise BadPack(f"{path}: the files of {folder} do not lie together")
                size += member.size
                if size > _MAX_CASE_BYTES:
                    raise BadPack(f"{path}: {folder} is larger than {_MAX_CASE_BYTES >> 20} MiB")
                files[name.name] = opened.read()
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise BadPack(f"{path}: neither a folder nor an archive of cases ({error})") from error
    if CASE_FILE in files:
        yield CaseFiles(f"{path}:{folder}", files)
