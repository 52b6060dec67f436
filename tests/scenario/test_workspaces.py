"""Two workspaces of one app, with the same people, channels and times, and one bot between them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
import pytest_asyncio
from cryptography.fernet import Fernet

from bot.app.worker import Times
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.seeds import MEMBER, RESPONDER, SECOND_RESPONDER
from bot.demo.workspace.state import Setup, Workspace
from bot.domain.ids import TeamId, UserId
from bot.ports.installations import Installed
from bot.privacy.token_seal import TokenSeal
from bot.slack.ingress.oauth import INSTALL_PATH, REDIRECT_PATH
from bot.store.installations import StoredInstallations
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import on_stage
from tests.one_slack import OneSlack
from tests.stage import CONFIRM, Asked, Stage, question_of, results, shown

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOME, ACME, EVIL = "T0HOME00001", "T0ACME00001", "T0EVIL00001"
KEY = Fernet.generate_key().decode()
SECRET = "app-secret-Pq81Ld63Xn"
SETTINGS = {
    "slack": {
        "mode": "http",
        "client_id": "1.2",
        "client_secret": SECRET,
        "token_keys": [KEY],
    },
    "workspaces": {ACME: {"daily_usd_limit": 900.0, "admins": ["acme-lead"]}},
    "roles": {"acme-lead": {"workspace": ACME, "users": [MEMBER]}},
    "admins": {"roles": ["responder"]},
    "channels": [
        {"match": "incident-*", "products": ["checkout"], "confirm": ["responder"]},
        {
            "workspace": ACME,
            "match": "incident-checkout",
            "products": ["checkout"],
            "confirm": ["acme-lead"],
        },
    ],
}
PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}


HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


def script(request: Recorded) -> Round:
    if "slowly" in question_of(request):
        hold = HELD[question_of(request).split()[-1]]
        return Round(text=("The pool is exhausted ", "since v2.4.0."), hold=hold, hold_at=2)
    if results(request) or "propose" not in question_of(request):
        return Round(text=("I have looked.",))
    return Round(calls=(Call("core__propose_action", PROPOSAL),))


@dataclass
class Two:
    """`home` and `acme` are the same bot, seen from either workspace."""

    slack: OneSlack
    home: Stage
    acme: Stage
    http: aiohttp.ClientSession

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.home.service.http_port}"

    async def begun(self, team: str) -> tuple[str, str]:
        """The cookie of who installs, and Slack's address where they consent."""
        async with self.http.get(
            f"{self.origin}{INSTALL_PATH}?team={team}", allow_redirects=False
        ) as sent:
            assert sent.status == 302
            cookie = sent.cookies["slack-app-oauth-state"]
            assert cookie["secure"]
            assert cookie["httponly"]
            return f"{cookie.key}={cookie.value}", sent.headers["Location"]

    async def consented(self, address: str) -> str:
        async with self.http.get(address, allow_redirects=False) as back:
            assert back.status == 302
            return back.headers["Location"]

    async def ended(self, address: str, cookie: str) -> tuple[int, str]:
        async with self.http.get(address, headers={"Cookie": cookie}) as page:
            return page.status, await page.text()

    async def install(self, team: str) -> tuple[int, str]:
        cookie, address = await self.begun(team)
        return await self.ended(await self.consented(address), cookie)

    async def answer(self, stage: Stage, user: str, text: str = "@kortex why is it slow?") -> str:
        return await stage.answered(text, user)

    def kinds(self) -> list[str]:
        return [kind for (kind,) in self.home.query("SELECT kind FROM audit ORDER BY seq")]


def _workspace(app: AppIdentity) -> Workspace:
    return Workspace(Setup(app=app))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    home = AppIdentity(team_id=HOME)
    others = [
        _workspace(replace(home, team_id=team, team_name=team, bot_user_id=f"U0BOT{number}"))
        for number, team in enumerate((ACME, EVIL))
    ]
    slack = OneSlack(_workspace(home), others, client_secret=SECRET)
    folder = tmp_path_factory.mktemp("kortex")
    async with (
        on_stage(folder, script, SETTINGS, slack=slack, times=Times()) as stage,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
    ):
        stage.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
        both = Two(slack, stage, replace(stage, workspace=others[0]), http)
        slack.default_redirect = f"{both.origin}{REDIRECT_PATH}"
        yield both


@pytest_asyncio.fixture(loop_scope="module")
async def installed(two: Two) -> Two:
    """Acme has the app, with a token of its own."""
    if TeamId(ACME) not in await _rows(two).revisions():
        assert (await two.install(ACME))[0] == 200
    return two


def _rows(two: Two) -> StoredInstallations:
    return StoredInstallations(two.home.service.base.stores.database, TokenSeal([KEY]))


async def _uninstall(two: Two) -> None:
    """Acme has not got the app."""
    await _rows(two).remove(TeamId(ACME), "app_uninstalled")
    await two.home.service.workspaces.sync()


async def test_a_listed_workspace_installs_and_is_answered_in_its_own_channels(two: Two) -> None:
    await _uninstall(two)
    asked = await two.acme.ask("@kortex why is it slow?", RESPONDER)
    await two.acme.workspace.settled()
    assert two.acme.parts(asked) == []
    assert "ingress.denied" in two.kinds()[-3:]

    assert (await two.install(ACME))[0] == 200

    for stage, other in ((two.acme, two.home), (two.home, two.acme)):
        before = len(other.workspace.calls)
        asked = await stage.ask("@kortex why is it slow?", stage.newcomer())
        assert "I have looked." in await stage.answer(asked)
        assert other.parts(asked) == []
        posted = [each.method for each in [*other.workspace.calls][before:]]
        assert not {"chat.postMessage", "users.info", "conversations.info"} & set(posted)


async def test_no_token_appears_in_the_database_or_the_log(installed: Two) -> None:
    (row,) = await _rows(installed).all()
    assert row.token.startswith("xoxb-")
    await installed.answer(installed.acme, installed.acme.newcomer())
    kept = b"".join(path.read_bytes() for path in installed.home.folder.glob("kortex.db*"))
    assert b"xoxb-" not in kept
    assert row.token not in installed.home.rows()
    assert "xoxb-" not in installed.home.log.getvalue()
    assert SECRET not in installed.home.log.getvalue()


async def test_the_install_state_belongs_to_one_browser_and_works_once(two: Two) -> None:
    cookie, address = await two.begun(ACME)
    back = await two.consented(address)
    stolen, _ = await two.begun(ACME)
    assert (await two.ended(back, stolen))[0] == 400
    assert (await two.ended(back, ""))[0] == 400
    assert (await two.ended(back, cookie))[0] == 200
    status, page = await two.ended(back, cookie)
    assert (status, "invalid_state" in page) == (401, True)

    cookie, _ = await two.begun(ACME)
    state = cookie.partition("=")[2]
    page = f"{two.origin}{REDIRECT_PATH}?state={state}"
    assert (await two.ended(f"{page}&code=made-up", cookie))[0] == 401
    assert "made-up" not in two.home.log.getvalue()


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("error=%3Cscript%3Ealert(1)%3C/script%3E", 200),
        ("error=access_denied", 200),
        ("", 400),
        ("state=%ED%A0%80&code=" + "%28" * 1_500, 400),
    ],
)
async def test_an_arbitrary_install_request_gets_a_page_that_echoes_nothing(
    two: Two, query: str, status: int
) -> None:
    got, page = await two.ended(f"{two.origin}{REDIRECT_PATH}?{query}", "")
    assert got == status
    assert "alert" not in page


async def test_a_forged_forwarding_address_is_ignored(two: Two) -> None:
    _, address = await two.begun("T1%0d%0aX: y")
    assert "team" not in parse_qs(urlsplit(address).query)


async def test_an_unlisted_workspace_is_refused_and_keeps_no_app(two: Two) -> None:
    status, page = await two.install(EVIL)
    assert (status, "cannot install this app" in page) == (403, True)
    evil = two.slack.others[1]
    assert [call.method for call in evil.calls][-1] == "apps.uninstall"
    assert TeamId(EVIL) not in await _rows(two).revisions()
    assert "ingress.denied" in two.kinds()[-3:]


@pytest.mark.parametrize(
    ("granted", "told"),
    [
        ({"is_enterprise_install": True, "team": None}, "whole organisations"),
        ({"refresh_token": "xoxe-1", "team": {"id": ACME}}, "token rotation"),
        ({"team": {"id": ACME}}, "another app"),
        ({"team": {"id": HOME}}, "already connected"),
        ({"access_token": None}, "cannot install this app"),
        ({"team": ACME}, "could not be asked"),
        ({"authed_user": [[]], "team": {"id": ACME}}, "could not be asked"),
        ({"access_token": "xoxb-nobodys"}, "invalid_code"),
    ],
)
async def test_a_failed_installation_changes_nothing(
    installed: Two, granted: dict[str, object], told: str
) -> None:
    before = await _rows(installed).all()
    installed.slack.granted = granted  # type: ignore[assignment]
    status, page = await installed.install(EVIL)
    installed.slack.granted = {}
    assert (status in (401, 403, 502), told in page) == (True, True)
    assert await _rows(installed).all() == before


async def test_only_a_cards_own_workspace_decides_it(installed: Two) -> None:
    two = installed
    asked = await two.acme.ask("@kortex propose a way out", two.acme.newcomer())
    await two.acme.answer(asked)
    card = await two.acme.card(asked)
    at_home = await two.home.ask("@kortex propose a way out", two.home.newcomer())
    await two.home.answer(at_home)
    own = await two.home.card(at_home)

    value = str((card.action(CONFIRM) or {})["value"])
    told = await two.home.private_reply(RESPONDER, two.home.forge(RESPONDER, own, CONFIRM, value))
    assert "This proposal is not open any more" in told
    # The role of home lists this very id, of home.
    told = await two.acme.private_reply(RESPONDER, two.acme.press(RESPONDER, card, CONFIRM))
    assert "Ask an acme-lead" in told
    before = two.home.effects

    await two.acme.press(MEMBER, card, CONFIRM)
    await two.acme.card(asked, "ucceeded")
    assert two.home.effects == before + 1
    told = await two.home.private_reply(MEMBER, two.home.press(MEMBER, own, CONFIRM))
    assert "responder" in told
    assert "acme" not in shown(await two.home.card(at_home))


async def _said(stage: Stage, user: str, command: str) -> str:
    ack = await stage.workspace.command(user, "C0CHECKOUT", command)
    return str(ack.body)


@pytest.mark.parametrize(
    "command", ["audit", "budget", "sessions", "quality", "proposals", "status"]
)
async def test_admins_see_only_their_own_workspace(installed: Two, command: str) -> None:
    two = installed
    await two.answer(two.acme, two.acme.newcomer())
    await two.answer(two.home, two.home.newcomer())
    of_acme = await _said(two.acme, MEMBER, command)
    of_home = await _said(two.home, SECOND_RESPONDER, command)
    assert "Only admins" not in of_acme + of_home
    assert HOME not in of_acme
    assert ACME not in of_home
    assert "more in places" not in of_acme
    refused = await _said(two.acme, RESPONDER, "audit")
    assert "acme-lead" in refused


async def test_only_the_home_workspace_sets_and_lifts_a_global_freeze(installed: Two) -> None:
    two = installed
    await _said(two.home, RESPONDER, "freeze on a secret reason")
    assert "every workspace" in await _said(two.acme, MEMBER, "freeze off")
    status = await _said(two.acme, MEMBER, "status")
    assert "Frozen" in status
    assert "secret reason" not in status
    assert RESPONDER not in status
    assert "freeze ended" in (await _said(two.home, RESPONDER, "freeze off")).lower()


async def test_a_workspace_without_rules_reads_nothing(installed: Two) -> None:
    before = len(installed.home.models.requests)
    told = await installed.acme.answered(
        "@kortex why is it slow?", installed.acme.newcomer("C0PAYMENTS"), "C0PAYMENTS"
    )
    assert "I do not answer here" in told
    assert len(installed.home.models.requests) == before


async def test_a_removed_and_reinstalled_workspace_loses_no_message(
    installed: Two,
) -> None:
    two, acme = installed, installed.slack.others[0]
    two.slack.remove(acme)
    await acme.settled()
    assert "workspace.removed" in two.kinds()
    asked = await two.acme.ask("@kortex why is it slow?", RESPONDER)
    await acme.settled()
    assert two.acme.parts(asked) == []

    assert (await two.install(ACME))[0] == 200
    assert "I have looked." in await two.answer(two.acme, two.acme.newcomer())
    two.slack.send_removed_event(acme)  # late, of the installation before
    await acme.settled()
    assert "I have looked." in await two.answer(two.acme, two.acme.newcomer())


async def test_a_growing_answer_is_complete_after_the_app_is_reinstalled(
    installed: Two,
) -> None:
    two, before = installed, len(installed.home.models.requests)
    asked = await _grows_and_loses_the_app(two, "before")

    assert (await two.install(ACME))[0] == 200  # a new token, while the model still speaks
    HELD["before"].set()

    assert "exhausted since v2.4.0." in await two.acme.answer(asked)
    assert (len(two.acme.parts(asked)), len(two.home.models.requests) - before) == (1, 1)


async def test_an_answer_that_ends_while_the_app_is_removed_is_shown_later(
    installed: Two,
) -> None:
    two, before = installed, len(installed.home.models.requests)
    asked = await _grows_and_loses_the_app(two, "after")
    HELD["after"].set()
    kept = "SELECT turn_id FROM undelivered"
    async with asyncio.timeout(15):
        while (asked.turn_in(two.slack.others[0]),) not in two.home.query(kept):  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    assert (await two.install(ACME))[0] == 200

    assert "exhausted since v2.4.0." in await two.acme.answer(asked)
    assert (len(two.acme.parts(asked)), len(two.home.models.requests) - before) == (1, 1)


async def _grows_and_loses_the_app(two: Two, word: str) -> Asked:
    asked = await two.acme.ask(f"@kortex answer slowly {word}", two.acme.newcomer())
    await two.acme.live(asked, "The pool is")
    two.slack.remove(two.slack.others[0])
    await two.slack.others[0].settled()
    return asked


async def test_an_installation_by_another_replica_is_served_and_its_removal_is_not(
    installed: Two,
) -> None:
    two, acme = installed, installed.slack.others[0]
    (row,) = await _rows(two).all()
    assert await _rows(two).remove(TeamId(ACME), "app_uninstalled")
    await two.home.service.workspaces.sync()
    asked = await two.acme.ask("@kortex why is it slow?", RESPONDER)
    await acme.settled()
    assert two.acme.parts(asked) == []
    await _rows(two).save(
        Installed(row.team, UserId(acme.app.bot_user_id), row.bot_id, row.token, row.app_id), "U1"
    )
    assert "I have looked." in await two.answer(two.acme, two.acme.newcomer())


async def test_a_silently_revoked_token_is_noticed_and_ends_its_turns(
    installed: Two,
) -> None:
    two, acme = installed, installed.slack.others[0]
    asked = await two.acme.ask("@kortex answer slowly silence", two.acme.newcomer())
    await two.acme.live(asked, "The pool is")
    calls = two.home.workspace.calls
    calls.clear()
    two.slack.remove(acme, tells=False)
    HELD["silence"].set()
    await two.home.workspace.wait_for(lambda: any(c.error == "account_inactive" for c in calls), 10)
    await two.home.service.workspaces.sync()
    assert await _rows(two).all() == []
    assert "since v2.4.0." not in str(two.acme.parts(asked))
    assert "I have looked." in await two.answer(two.home, two.home.newcomer())


async def test_a_cancelled_wait_does_not_break_opening_a_workspace(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaces = two.home.service.workspaces
    entered, gate, opened = asyncio.Event(), asyncio.Event(), spaces._opened

    async def slowly(*args: Any) -> Any:
        entered.set()
        await gate.wait()
        return await opened(*args)

    monkeypatch.setattr(spaces, "_opened", slowly)
    await _uninstall(two)
    installing = asyncio.create_task(two.install(ACME))
    await entered.wait()
    waiting = asyncio.create_task(spaces.reach(TeamId(ACME)))
    await asyncio.sleep(0)
    waiting.cancel()
    installing.cancel()
    await asyncio.gather(waiting, installing, return_exceptions=True)
    gate.set()
    assert "I have looked." in await two.answer(two.acme, two.acme.newcomer())


async def test_a_reload_closes_an_unlisted_workspace(installed: Two) -> None:
    two, settings = installed, installed.home.settings
    own = [rule for rule in settings.channels if not rule.workspace]
    roles = {name: role for name, role in settings.roles.items() if not role.workspace}
    assert await two.home.reload(workspaces={}, channels=own, roles=roles)
    await two.home.service.workspaces.sync()
    asked = await two.acme.ask("@kortex why is it slow?", RESPONDER)
    await two.acme.workspace.settled()
    assert two.acme.parts(asked) == []
    assert len(await _rows(two).all()) == 1
    named = {name: getattr(settings, name) for name in ("workspaces", "channels", "roles")}
    assert await two.home.reload(**named)
    await two.home.service.workspaces.sync()
    assert "I have looked." in await two.answer(two.acme, two.acme.newcomer())
