"""A library that would read certificates while it is imported."""

import subprocess
import sys

from tests.sources import ROOT, sources

STORES = """
import ssl
from bot.upkeep.late import spare_libraries
spare_libraries()
import aiohttp.connector
from adapters.http import ssl_context
for context in (
    *(each for each in vars(aiohttp.connector).values() if isinstance(each, ssl.SSLContext)),
    ssl.create_default_context(),
    ssl_context(),
):
    print(context.cert_store_stats()["x509"] > 0, context.verify_mode.name)
"""
# The first closes over connections of ours, the second over Slack's; the demo's calls are plain.
OPEN_SESSIONS = {
    "adapters/transport.py",
    "bot/slack/api/session.py",
    "bot/demo/workspace/signed_http.py",
}


def test_what_aiohttp_makes_for_itself_trusts_nobody_and_all_else_whom_it_did() -> None:
    told = subprocess.run(
        [sys.executable, "-c", STORES], cwd=ROOT, check=True, capture_output=True, text=True
    )

    assert told.stdout.splitlines() == [
        "False CERT_REQUIRED",
        "False CERT_NONE",
        "True CERT_REQUIRED",
        "True CERT_REQUIRED",
    ]


def test_sessions_are_opened_where_they_name_whom_they_trust() -> None:
    opening = {each.path for each in sources() if "ClientSession(" in each.text}

    assert opening == OPEN_SESSIONS
