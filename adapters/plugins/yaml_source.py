"""YAML read as data only: bounded in size and depth, without aliases, and with the line of each key."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

# A manifest is a page. Pure-Python YAML takes about 3 ms per KiB, and aliases grow without bound.
MAX_BYTES: Final = 32 * 1024
MAX_DEPTH: Final = 12

_Path = tuple[str, ...]


class ManifestInvalid(ValueError):
    """A manifest cannot be used. The message is `FILE:LINE: KEY: problem`."""

    def __init__(self, file: str, line: int, what: str) -> None:
        super().__init__(f"{file}:{line}: {what}")
        self.file = file
        self.line = line


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A parsed file. `lines` maps the path of each key to its line, from 1."""

    file: str
    value: object
    lines: dict[_Path, int]

    def invalid(self, what: str, *path: str | int) -> ManifestInvalid:
        """The error at the nearest key that the file holds."""
        known: _Path = ()
        for step in map(str, path):
            if (*known, step) in self.lines:
                known = (*known, step)
        where = f"{'.'.join(known)}: " if known else ""
        return ManifestInvalid(self.file, self.lines.get(known, 1), f"{where}{what}")


def read_yaml(path: Path) -> YamlSource:
    """Reads the file. Raises ManifestInvalid."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ManifestInvalid(str(path), 1, f"larger than {MAX_BYTES} bytes")
        return parse_yaml(raw.decode("utf-8"), str(path))
    except OSError as error:
        raise ManifestInvalid(str(path), 1, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ManifestInvalid(str(path), 1, "is not UTF-8 text") from error


def parse_yaml(text: str, file: str) -> YamlSource:
    """Raises ManifestInvalid for anything but one document of plain values."""
    if len(text) > MAX_BYTES:
        raise ManifestInvalid(file, 1, f"larger than {MAX_BYTES} bytes")
    try:
        _refuse_bombs(text, file)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[_Path, int] = {}
        _note_lines(node, (), lines, file)
        return YamlSource(file, yaml.safe_load(text), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ManifestInvalid(file, line, f"not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, ManifestInvalid):
            raise
        raise ManifestInvalid(file, 1, "not valid YAML") from error


def _refuse_bombs(text: str, file: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ManifestInvalid(file, line, "aliases and anchors are refused; write values out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ManifestInvalid(file, line, "nested too deep")


def _note_lines(node: "yaml.Node | None", path: _Path, lines: dict[_Path, int], file: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            line = key.start_mark.line + 1
            if here in lines:
                raise ManifestInvalid(file, line, f"{'.'.join(here)}: set twice")
            lines[here] = line
            _note_lines(value, here, lines, file)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            lines[(*path, str(number))] = item.start_mark.line + 1
            _note_lines(item, (*path, str(number)), lines, file)
