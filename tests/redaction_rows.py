"""Rows made by format: tokens as vendors publish them in the places they turn up in, and calm text.

Seeded, so that a row that fails fails again.
"""

import random
import string
from collections.abc import Callable, Iterator
from uuid import UUID

_DICE = random.Random(20261122)
_HEX = "0123456789abcdef"
_ALNUM = string.ascii_letters + string.digits


def made(alphabet: str, size: int) -> str:
    return "".join(_DICE.choices(alphabet, k=size))


def hexa(size: int) -> str:
    return made(_HEX, size)


def word(size: int) -> str:
    """Letters of both cases and digits."""
    return made(_ALNUM, size - 3) + "q7K"


def number(low: int, high: int) -> str:
    return str(_DICE.randint(low, high))


TOKENS: dict[str, Callable[[], str]] = {
    "twilio key": lambda: "SK" + hexa(32),
    "twilio account": lambda: "AC" + hexa(32).upper(),
    "sourcegraph with instance": lambda: f"sgp_{hexa(16)}_{hexa(40)}",
    "sourcegraph local": lambda: f"sgp_local_{hexa(40)}",
    "sourcegraph old": lambda: "sgp_" + hexa(40),
    "cisco type 8": lambda: f"$8${word(14)}${word(43)}",
    "cisco type 9": lambda: f"$9${word(14)}${word(43)}",
    "phpass": lambda: "$P$" + word(31),
    "telegram": lambda: f"{number(10**8, 10**10 - 1)}:AA{made(_ALNUM + '_-', 33)}",
    "telegram that ends in a dash": lambda: f"{number(10**8, 10**10 - 1)}:AA{word(32)}-",
    "github": lambda: "ghp_" + word(36),
    "gitlab": lambda: "glpat-" + word(20),
    "stripe": lambda: "sk_live_" + word(24),
    "aws": lambda: "AKIA" + made(string.ascii_uppercase + "234567", 16),
    "npm": lambda: "npm_" + word(36),
    "cursor": lambda: "key_" + hexa(64),
    "twitch": lambda: "oauth:" + made(string.ascii_lowercase + string.digits, 30),
    "voyage": lambda: "pa-" + word(42) + "_",
}  # fmt: skip
PLACES = (
    "{}", "use {} now", '"key":"{}"', "token={}", "posting to https://api.example.com/x/{}/send", "({})", "a\t{}\tb",
    "level=error msg=\"refused {}\" code=401", "\\n{}\\n",
)  # fmt: skip
NAMED: dict[str, Callable[[], str]] = {
    "https://api.telegram.org/bot{}/getMe": TOKENS["telegram"],
    "Unseal Key 2: {}": lambda: word(43) + "=",
    "Unseal Key 5 (will be hidden): {}": lambda: word(44),
    "Recovery Key 1: {}": lambda: hexa(64),
    "BUNDLE_ENTERPRISE__CONTRIBSYS__COM={}": lambda: f"{hexa(8)}:{hexa(8)}",
    "bundle config gems.contribsys.com {}": lambda: f"{hexa(8)}:{hexa(8)}",
    "AKIAIOSFODNN7EXAMPLE:{}": lambda: word(40),
    'AKIAIOSFODNN7EXAMPLE", "{}"': lambda: word(40),
    "AKIAIOSFODNN7EXAMPLE {}": lambda: word(40),
    "admin:500:{}:::": lambda: f"{hexa(32)}:{hexa(32)}",
    "sqlcmd -S db -U sa -P '{}' -Q x": lambda: word(14),
    "glassnode key {}": lambda: word(27),
    "restpack = '{}'": lambda: word(48),
    "alphavantage_token: {}": lambda: word(32),
    "enable secret 5 {}": lambda: word(30),
    "snmp community 7 {}": lambda: hexa(22),
    "my social security number is {}": lambda: "219" + number(100000, 989999),
    "user_ssn={}": lambda: f"219-{number(10, 98)}-{number(1000, 9998)}",
    "SSN on file: {}": lambda: "219" + number(100000, 989999),
    "seen {}:": lambda: f"219-{number(10, 98)}-{number(1000, 9998)}",
    "mail {}12345": lambda: f"ana.{made(string.ascii_lowercase, 6)}@acme.com",
    "Call 555 {}": lambda: f"{number(200, 999)} {number(1000, 9999)}",
    "paid by card {}": lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
    "visa: {}": lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
}  # fmt: skip
CALM: dict[str, Callable[[], str]] = {
    "AKIA key in commit {}": lambda: hexa(40),
    "sqlcmd -S db -E -Q {}": lambda: f"select{number(10, 99)}",
    "grant type oauth:{}": lambda: "code",
    "trace_id={} span_id=00f067aa0ba902b7": lambda: hexa(32),
    "uid {}": lambda: str(UUID(hex=hexa(32))),
    "commit {} rolled out": lambda: hexa(40),
    "image app@sha256:{} pulled": lambda: hexa(64),
    "pod checkout-{}-x2x7p restarted": lambda: hexa(10),
    "order {} shipped": lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
    '{{"id":{},"state":"done"}}': lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
    "request_id={} took 12ms": lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
    "node_memory_used_bytes {}": lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
    "1 2 {} 7": lambda: with_luhn("4" + number(10**13, 10**14 - 1)),
    "offsets [{}, 12]": lambda: "4" + number(10**13, 10**14 - 1),
    "rx {} packets": lambda: f"{number(200, 999)} {number(200, 999)} {number(1000, 9999)}",
    "p99 {} ms": lambda: f"{number(200, 999)} {number(200, 999)} {number(1000, 9999)}",
    "part {} in stock": lambda: f"{number(200, 999)}-{number(200, 999)}-{number(1000, 9999)}",
    "total={} 12": lambda: f"{number(200, 999)} {number(200, 999)} {number(1000, 9999)}",
    "serial {} replaced": lambda: f"{number(100, 899)}-{number(10, 98)}-{number(1000, 9999)}",
    "process {} exited with 137": lambda: "219" + number(100000, 989999),
    "version 1.{}": lambda: f"{number(100, 899)}.{number(10, 98)}.{number(1000, 9999)}",
    "password=\n{} is ready": lambda: f"checkout-{hexa(10)}",
    "token:\n  {}: true": lambda: f"rollout{number(10, 99)}",
    "password= user=app{} host=db": lambda: number(10, 99),
    "last call: {}": lambda: number(1_600_000_000_000, 1_799_999_999_999),
    "started at 1{}": lambda: number(700_000_000, 799_999_999),
    "app@{}.svc.cluster.local": lambda: f"node{number(10, 99)}",
    "hash {} ok": lambda: hexa(40).upper(),
    "GET /search?q=a%20b%2Fc%3D{} 200": lambda: number(10, 99),
    "bytes: 00 0a ff 10 22 31 7f {} 80 9c e1": lambda: hexa(2),
}  # fmt: skip


def with_luhn(digits: str) -> str:
    """The digits with Luhn's check digit."""
    doubled = [int(d) * 2 for d in digits[::-2]]
    total = sum(d - 9 * (d > 9) for d in doubled) + sum(map(int, digits[-2::-2]))
    return digits + str(-total % 10)


def positives() -> Iterator[tuple[str, str, str]]:
    """The kind, a text, and the secret in it."""
    for kind, token in TOKENS.items():
        for place in PLACES:
            for secret in (token(), token()):
                yield kind, place.format(secret), secret
    for place, value in NAMED.items():
        for secret in (value(), value(), value(), value()):
            yield place, place.format(secret), secret


def negatives() -> Iterator[tuple[str, str]]:
    """The kind and a text."""
    for place, value in CALM.items():
        for _ in range(20):
            yield place, place.format(value())
