"""The lines of a log that say why a container ended."""

import pytest

from tools.analysis.cluster.crash import crash_reason

JAVA = [
    "2026-11-21 14:00:01.100 ERROR 1 --- [main] o.s.boot.SpringApplication : Application run failed",
    "org.example.BeanException: Error creating bean 'pool'",
    "\tat org.example.Factory.make(Factory.java:12)",
    "Caused by: java.lang.IllegalStateException: no pool",
    "Caused by: java.net.ConnectException: Connection refused (ledger:5432)",
    "\t... 20 common frames omitted",
]
PYTHON = [
    "Traceback (most recent call last):",
    '  File "app.py", line 3, in <module>',
    "KeyError: 'MAIL_HOST'",
    "bye",
]
GO = [
    "level=info msg=up",
    "panic: listen tcp :8080: bind: address already in use",
    "goroutine 1 [x]:",
]
NODE = [
    "Error: ER_ACCESS_DENIED: access denied for user",
    "    at Sequence.end (/app/x.js:83:24) {",
    "  code: 'ER_ACCESS_DENIED',",
    "  fatal: true",
    "}",
    "npm notice New version",
]


@pytest.mark.parametrize(
    ("lines", "begin"),
    [
        (JAVA, "java.net.ConnectException: Connection refused (ledger:5432); "),
        (PYTHON, "KeyError: 'MAIL_HOST'"),
        (GO, "panic: listen tcp :8080: bind: address already in use"),
        (NODE, "Error: ER_ACCESS_DENIED: access denied for user"),
        (["starting", "2026-11-21T14:00:00Z stopped"], "stopped"),
        (["unable to retrieve container logs for containerd://f00"], ""),
        ([], ""),
    ],
)
def test_the_deepest_cause_and_the_last_error_are_reported(lines: list[str], begin: str) -> None:
    said = crash_reason(lines)

    assert said.startswith(begin)
    assert bool(said) is bool(begin)


def test_a_long_line_keeps_its_end() -> None:
    assert crash_reason([f"ERROR {'x' * 2000} disk quota"]).endswith("disk quota")
