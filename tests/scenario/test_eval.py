"""`kortex eval`: cases of folders and archives go through the product's own path and are scored."""

import json
import tarfile
from pathlib import Path

import pytest

from bot.cli.main import main
from tests.packs import NOW, minutes, write_case
from tests.plain_logging import logging_put_back

FAULT = {"healthy": False, "culprit": ["db"], "mechanism_words": []}
QUIET = {"healthy": True, "culprit": [], "mechanism_words": []}


pytestmark = pytest.mark.may_block_the_loop


def flat(folder: Path, name: str, truth: dict[str, object]) -> Path:
    metric = "http_request_duration_seconds_p99"
    points = [(at, 0.2) for at in minutes(240)]
    series = [{"name": metric, "labels": {"service": "db"}, "points": points}]
    return write_case(folder, name, truth, products=("web", "db"), rows={"metrics": series})


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with logging_put_back(), pytest.raises(SystemExit) as end:
        main(["eval", *arguments])
    printed = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return end.value.code, printed.out, printed.err


def test_cases_are_asked_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat(tmp_path, "a-fault", FAULT)
    flat(tmp_path, "b-quiet", QUIET)

    code, out, err = run(capsys, str(tmp_path), "--json")
    told = json.loads(out)

    assert code == 0
    assert [(one["set"], one["faults"], one["healthy"]) for one in told["sets"]] == [("own", 1, 1)]
    assert [one["id"] for one in told["results"]] == ["a-fault", "b-quiet"]
    assert all(one["tool_calls"] > 0 for one in told["results"])
    assert "a-fault" in err


def test_variants_are_counted_as_separate_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat(tmp_path, "a-fault", FAULT)

    options = ["--variants", "scale,products", "--seeds", "2", "--json"]
    code, out, _err = run(capsys, str(tmp_path), *options)
    told = json.loads(out)

    assert code == 0
    assert [(one["set"], one["faults"]) for one in told["sets"]] == [
        ("own", 1),
        ("own~products", 2),
        ("own~scale", 2),
    ]
    assert [one["id"] for one in told["results"]][:2] == ["a-fault", "a-fault~products-1"]


def test_unknown_kind_of_variant_exits_2_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _out, err = run(capsys, str(tmp_path), "--variants", "scale,colour")

    assert code == 2
    assert "colour: write all, or some of units, metrics, products, scale" in err


def test_cases_of_several_processes_equal_those_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        flat(tmp_path, name, FAULT)
    (flat(tmp_path, "d", QUIET) / "case.json").write_text("not json")

    found = [
        (code, [(one["id"], one["verdict"], one["backend_calls"]) for one in told["results"]])
        for code, told in (
            (code, json.loads(out))
            for code, out, _err in (
                run(capsys, str(tmp_path), "--json", "--jobs", jobs) for jobs in ("1", "2")
            )
        )
    ]

    assert found[0] == found[1]
    assert (found[0][0], len(found[0][1])) == (2, 3)
    assert all(calls > 0 for _, _, calls in found[0][1])


def test_archive_gives_the_same_result_as_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat(tmp_path / "own", "a-fault", FAULT)
    with tarfile.open(tmp_path / "own.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "own", "own")

    found = [
        [(one["id"], one["verdict"], one["suspects"], one["answer"]) for one in told["results"]]
        for told in (
            json.loads(run(capsys, str(tmp_path / place), "--json")[1])
            for place in ("own", "own.tar.xz")
        )
    ]

    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_limit_ends_it_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c"):
        flat(tmp_path, name, QUIET)

    _code, out, _err = run(capsys, str(tmp_path), "--json", "--limit", "2")

    assert [one["id"] for one in json.loads(out)["results"]] == ["a", "b"]


def test_truth_and_later_data_are_hidden_from_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = round(NOW.timestamp() + 60) * 10**9
    line = {"ts_ns": later, "labels": {"service": "db", "level": "error"}, "line": "later zebra"}
    truth = {**FAULT, "kind": "zebra", "mechanism_words": [["zebra"]]}
    write_case(tmp_path, "a", truth, products=("web", "db"), rows={"logs": [line]})

    _code, out, _err = run(capsys, str(tmp_path), "--json")

    assert "zebra" not in out


def test_case_without_a_usable_truth_is_skipped_with_a_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat(tmp_path, "a", {"expected_output": "graded by reading"})
    flat(tmp_path, "b", QUIET)

    _code, out, err = run(capsys, str(tmp_path), "--json")

    assert [one["id"] for one in json.loads(out)["results"]] == ["b"]
    assert "1 cases without a valid truth" in err


@pytest.mark.parametrize("broken", ["not json", '{"id": 1}'])
def test_broken_case_exits_2_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    (flat(tmp_path, "a", QUIET) / "case.json").write_text(broken)

    code, _out, err = run(capsys, str(tmp_path))

    assert code == 2
    assert "case.json" in err
    assert "Traceback" not in err


def test_folder_without_cases_exits_2_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _out, err = run(capsys, str(tmp_path))

    assert code == 2
    assert "holds no case" in err


def test_results_before_a_broken_case_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat(tmp_path, "a", QUIET)
    (flat(tmp_path, "b", QUIET) / "metrics.ndjson").write_text("{}\nnot json")

    code, out, err = run(capsys, str(tmp_path), "--json")

    assert code == 2
    assert [one["id"] for one in json.loads(out)["results"]] == ["a"]
    assert "metrics.ndjson:1: name" in err
    assert "1 cases were asked before" in err
    assert "Traceback" not in err


def test_duplicate_case_is_asked_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat(tmp_path / "own", "a", QUIET)
    with tarfile.open(tmp_path / "own.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "own", "own")

    _code, out, err = run(capsys, str(tmp_path), "--json")

    assert [one["id"] for one in json.loads(out)["results"]] == ["a"]
    assert "duplicate case id" in err


def test_run_is_compared_with_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat(tmp_path / "packs", "a", FAULT)
    right = {"id": "a", "verdict": "cause", "suspects": ["db"]}
    (tmp_path / "before.json").write_text(json.dumps({"results": [right]}))
    arguments = [str(tmp_path / "packs"), "--against", str(tmp_path / "before.json")]

    code, out, _err = run(capsys, *arguments)
    _code, as_json, _err = run(capsys, *arguments, "--json")

    assert code == 1
    assert "WORSE: own top 1" in out
    assert json.loads(as_json)["against"]["cases"] == 1


def test_named_configuration_must_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat(tmp_path, "a", QUIET)

    code, _out, err = run(capsys, str(tmp_path), "--config", str(tmp_path / "new.toml"))

    assert code == 2
    assert "new.toml" in err


def test_metric_roles_come_from_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [[at, 0.9 if number > 230 else 0.1] for number, at in enumerate(minutes(240))]
    series = [{"name": "zork", "labels": {"service": "db"}, "points": points}]
    write_case(tmp_path / "packs", "a", FAULT, products=("db",), rows={"metrics": series})
    config = tmp_path / "own.toml"
    config.write_text('[observe.metrics.signals.zork]\nrole = "none"\n')

    said = [
        json.loads(run(capsys, str(tmp_path / "packs"), "--json", *more)[1])["results"][0]["answer"]
        for more in ([], ["--config", str(config)])
    ]

    assert "zork" in said[0]
    assert "zork" not in said[1]


def test_provider_without_answers_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat(tmp_path, "a", QUIET)

    code, _out, err = run(capsys, str(tmp_path), "--provider", "openai")

    assert code == 1
    assert "1 of 1 answers failed and count as abstained" in err
