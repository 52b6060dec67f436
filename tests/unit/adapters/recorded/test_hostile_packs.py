"""Packs come from elsewhere: any error in one is a sentence that names file and line."""

import contextlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from pydantic import JsonValue

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.packs.archive import BadPack, CaseFiles, case_files
from adapters.recorded.packs.recording import read_recording
from adapters.recorded.packs.schema import LineRow
from adapters.recorded.player.backends import RecordedBackends, backends_of
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, LogSweepQuery, SweepQuery, TraceQuery
from tools.cluster_objects import ObjectQuery
from tools.errors import InvalidArguments

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
NOW_S = NOW.timestamp()
NOW_NS = round(NOW_S) * 10**9
SPAN = {"trace_id": "a1", "span_id": "b1", "service": "web", "name": "GET /"}
CASE: dict[str, JsonValue] = {
    "id": "c",
    "set": "s",
    "asked": "?",
    "now": NOW.isoformat(),
    "products": ["web"],
}
SERIES: dict[str, JsonValue] = {
    "name": "request_duration_seconds_bucket",
    "labels": {"service": "web", "le": "0.5"},
    "unit": "seconds",
    "points": [[NOW_S - 120, 0.2], [NOW_S - 60, 0.3]],
}
POD: dict[str, JsonValue] = {
    "kind": "Pod",
    "metadata": {"name": "web-1", "creationTimestamp": "2026-11-20T00:00:00Z"},
    "status": {"phase": "Running", "containerStatuses": [{"restartCount": 1}]},
}
GOOD: Mapping[str, JsonValue] = {
    "case.json": CASE,
    "metrics.ndjson": SERIES,
    "logs.ndjson": {"ts_ns": NOW_NS - 60, "labels": {"service": "web"}, "line": "said"},
    "traces.ndjson": {**SPAN, "start_ns": NOW_NS - 60, "end_ns": NOW_NS - 30},
    "graph.json": {"edges": [["web", "db"]]},
    "kubernetes.json": {"objects": [POD], "events": [{"reason": "Started"}]},
    "deploys.json": {"deploys": [{"product": "web", "version": "2", "at": NOW.isoformat()}]},
}


def files(changed: Mapping[str, bytes]) -> CaseFiles:
    return CaseFiles(
        "p", {**{name: json.dumps(one).encode() for name, one in GOOD.items()}, **changed}
    )


@pytest.mark.parametrize(
    ("name", "line", "names"),
    [
        ("metrics.ndjson", b'{"name": "m", "points": [[0, NaN]]}', "metrics.ndjson:3: not JSON"),
        ("metrics.ndjson", b'{"name": "m", "points": [[0, 1e999]]}', "metrics.ndjson:3: not JSON"),
        ("metrics.ndjson", b'{"name": "m", "points": [[0, "inf"]]}', "points.0.1"),
        ("metrics.ndjson", b'{"name": "m", "points": [[0, -1e308]]}', "or equal to -1e300"),
        ("metrics.ndjson", b'{"name": "m", "points": [["NaN", 1]]}', "points.0.0"),
        ("metrics.ndjson", b'{"name": "m", "points": [[1e30, 1]]}', "points.0.0"),
        ("metrics.ndjson", b'{"name": "m", "points": [[0]]}', "metrics.ndjson:3: points.0.1"),
        ("metrics.ndjson", b'{"name": "", "points": []}', "metrics.ndjson:3: name"),
        ("metrics.ndjson", b'{"points": []}', "metrics.ndjson:3: name"),
        ("logs.ndjson", b'{"ts_ns": %d, "line": ""}' % 2**127, "logs.ndjson:3: ts_ns"),
        ("logs.ndjson", b'{"ts_ns": -%d, "line": ""}' % 2**127, "logs.ndjson:3: ts_ns"),
        ("logs.ndjson", b'{"ts_ns": 1, "line": "\\ud800"}', "logs.ndjson:3: not JSON"),
        ("logs.ndjson", b'{"ts_ns": 1, "line": "\xed\xa0\x80"}', "logs.ndjson:3: not JSON"),
        ("logs.ndjson", b'{"ts_ns": 1, "line": "cut', "logs.ndjson:3: not JSON"),
        ("logs.ndjson", b"[" * 5000, "logs.ndjson:3: not JSON"),
        ("logs.ndjson", b'{"ts_ns": 1, "line": "%s"}' % (b"x" * (9 << 20)), "logs.ndjson:3: the"),
        ("traces.ndjson", b"{}", "traces.ndjson:3: trace_id"),
        ("traces.ndjson", b'{"trace_id": "not hex"}', "traces.ndjson:3: trace_id"),
    ],
)  # fmt: skip
def test_bad_line_is_named(name: str, line: bytes, names: str) -> None:
    good = json.dumps(GOOD[name]).encode()

    with pytest.raises(BadPack) as told:
        read_recording(files({name: b"\n".join([good, b"", line])}))

    assert names in str(told.value)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("case.json", b"{}"),
        ("case.json", b"[]"),
        ("case.json", json.dumps(CASE | {"now": "9999-12-31T23:59:59Z"}).encode()),
        ("case.json", json.dumps(CASE | {"now": "2026-11-21T14:03:00"}).encode()),
        ("case.json", json.dumps(CASE | {"id": "a\x1b[2J"}).encode()),
        ("case.json", json.dumps(CASE | {"asked": ""}).encode()),
        ("graph.json", b'{"edges": [["web"]]}'),
        ("kubernetes.json", b'{"objects": [1]}'),
        ("kubernetes.json", b'{"events": [{"lastTimestamp": "yesterday"}]}'),
        ("kubernetes.json", b'{"objects": [{"kind": NaN}]}'),
        ("deploys.json", b'{"deploys": [{"product": "web"}]}'),
        ("deploys.json", b""),
    ],
)
def test_bad_document_is_named(name: str, content: bytes) -> None:
    with pytest.raises(BadPack, match=f"p/{name}: "):
        read_recording(files({name: content}))


VALUES: Sequence[JsonValue] = [
    None, True, -1, 10**30, 1e300, 5e-324, "", "x" * 600, "\x00", "NaN", "-1", "1e400",
    "2026-11-21T14:03:00", [], {}, [[]], [None], {"": None}, [{}],
]  # fmt: skip


def places(value: JsonValue, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [at, *(place for key, one in inner for place in places(one, (*at, key)))]


def put(value: JsonValue, place: tuple[str | int, ...], new: JsonValue) -> JsonValue:
    if not place:
        return new
    if isinstance(value, dict):
        return {k: put(v, place[1:], new) if k == place[0] else v for k, v in value.items()}
    assert isinstance(value, list)
    return [put(v, place[1:], new) if k == place[0] else v for k, v in enumerate(value)]


async def looked_at(world: RecordedBackends) -> None:
    """Everything that tools ask of it."""
    assert world.metrics and world.logs and world.kubernetes and world.deploys and world.traces  # noqa: PT018 - all that a case has
    found = await world.metrics.discover([], HOUR)
    await world.metrics.sweep(SweepQuery(found.signals, HOUR, 60.0))
    await world.logs.sweep(LogSweepQuery(["web"], HOUR))
    await world.traces.search(TraceQuery("web", HOUR))
    await world.kubernetes.table(ObjectQuery("pods"))
    await world.kubernetes.describe(ObjectQuery("pods", name="web-1"))
    await world.kubernetes.events(ObjectQuery("pods"))
    await world.deploys.between("*", HOUR)


@pytest.mark.parametrize("name", GOOD)
async def test_any_value_anywhere_is_refused_or_can_be_looked_at(name: str) -> None:
    for place, value in product(places(GOOD[name]), VALUES):
        content = json.dumps(put(GOOD[name], place, value)).encode()
        with contextlib.suppress(BadPack, InvalidArguments):
            recording = read_recording(files({name: content}))
            await looked_at(backends_of(recording, SetClock(NOW), UnsealedCodec()))


def archive(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    path = folder / "pack.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def member(name: str, content: bytes = b"{}") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def link(kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo("a/logs.ndjson")
    info.type, info.linkname = kind, "/etc/passwd"
    return info, b""


@pytest.mark.parametrize(
    "odd",
    [
        member("../case.json"),
        member("a/../../case.json"),
        member("/etc/case.json"),
        link(tarfile.SYMTYPE),
        link(tarfile.LNKTYPE),
        link(tarfile.FIFOTYPE),
        link(tarfile.CHRTYPE),
        member("a/case.json"),
    ],
    ids=["above", "out and up", "absolute", "symlink", "hard link", "fifo", "device", "twice"],
)
def test_archive_with_a_foreign_member_is_refused(
    tmp_path: Path, odd: tuple[tarfile.TarInfo, bytes]
) -> None:
    path = archive(tmp_path, member("a/case.json"), odd)

    with pytest.raises(BadPack, match=r"pack\.tar\.xz: "):
        list(case_files([path]))


def test_truncated_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, member("a/case.json", b" " * 100_000))
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(BadPack, match=r"pack\.tar\.xz: "):
        list(case_files([path]))


def test_oversized_archive_is_refused_unread(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a/case.json")
    info.size = 1 << 40
    (tmp_path / "pack.tar").write_bytes(info.tobuf() + b"\0" * 1024)

    with pytest.raises(BadPack, match="larger than 256 MiB"):
        list(case_files([tmp_path / "pack.tar"]))


def test_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "case.json").write_text("{}")
    (tmp_path / "a" / "logs.ndjson").symlink_to("/etc/passwd")

    with pytest.raises(BadPack, match=r"logs\.ndjson: not a file"):
        list(case_files([tmp_path]))


def test_files_outside_a_case_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("of the team")

    assert [list(case.files) for case in case_files([tmp_path])] == [["case.json"]]


def test_archives_in_a_folder_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "case.json").write_text("{}")
    archive(tmp_path, member("a/case.json"))

    places = [case.place.removeprefix(str(tmp_path)) for case in case_files([tmp_path])]

    assert places == ["/b", "/pack.tar.xz:a"]


def test_files_of_cases_may_be_in_any_order(tmp_path: Path) -> None:
    names = ("a/case.json", "b/case.json", "a/logs.ndjson", "b/notes.txt", "b/logs.ndjson")

    found = list(case_files([archive(tmp_path, *map(member, names))]))

    assert [sorted(case.files) for case in found] == [["case.json", "logs.ndjson"]] * 2


def test_a_line_with_an_unreadable_time_is_dropped() -> None:
    zero_time = LineRow.model_validate({"ts_ns": -6795364578871345152, "line": "said"})

    assert zero_time.ts_ns < 0
