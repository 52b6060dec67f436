"""The operator's page in a browser: asked, followed, decided, refused, and usable by everybody."""

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import orjson
import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.seeds import DIRECT, RESPONDER
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_api import caller, token_for
from tests.fixtures_page import PHONE, Visit, Visitor, browser, visit
from tests.fixtures_service import shared_stage
from tests.slack_request_gate import SlackRequestGate
from tests.stage import Stage, question_of, results

__all__ = ["browser", "shared_stage", "visit"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "slack": {"link_hosts": ["runbooks.example.com"]},
    "roles": {"lead": {"users": ["UNOBODY"]}, "asker": {"users": ["UNOBODY"]}},
    "admins": {"roles": ["lead"]},
    "channels": [
        {
            "match": "incident-*",
            "products": ["checkout", "payments"],
            "ask": ["responder", "asker"],
            "confirm": ["responder"],
        }
    ],
}
P99 = {
    "product": "checkout",
    "metric_name": "http_request_duration_seconds_p99",
    "time_range": "last 30m",
}
PATTERNS = {"product": "checkout", "time_range": "last 30m"}
ROLLBACK = {"action": "rollback-deploy", "product": "checkout", "rationale": "p99 rose"}
HELD = asyncio.Event()
HOSTILE = (
    "<img src=x onerror=alert(1)><script>window.hacked=1</script> [x](javascript:alert(2))"
    ' [y](https://a.example/"onmouseover=alert(3)) \u202eevil\u202c <svg/onload=alert(4)> **'
    " [l](https://evil.test/?d=SECRET) https://bare.test/x <https://slack.test/|here>"
    " [r](https://runbooks.example.com/checkout) [m](mailto:out@evil.test)"
    " [u](https://runbooks.example.com@evil.test/) [p](https://runbooks.example.com.evil.test/)"
    " [f][1] &lt;https://entity.test|x&gt; [[i](https://inner.test/)](HTTPS://OUTER.TEST/)\n\n"
    "|a|b|\n|-|-|\n|[c](https://cell.test/)|<https://token.test/|x>|\n\n[1]: https://reference.test/"
)
# Shown whole as text, because none leads to a host that answers may link to.
DISGUISED = (
    "https://evil.test/?d=SECRET",
    "https://bare.test/x",
    "https://slack.test/",
    "mailto:out@evil.test",
    "https://runbooks.example.com@evil.test/",
    "https://runbooks.example.com.evil.test/",
    "https://entity.test",
    "https://inner.test/",
    "HTTPS://OUTER.TEST/",
    "https://cell.test/",
    "https://token.test/",
    "https://reference.test/",
)
HEADLINE = "The pool of checkout is exhausted since 23:01 UTC."
ITEMS = "\n".join(f"- service-{n} runs {n} pods" for n in range(60))
WIDE = "\n".join(
    ["| Pod | Status | Node |", "|---|---|---|", *(f"| checkout-{n} | Running | node-{n} |" for n in range(30))]
)  # fmt: skip
# Each is a megabyte, and a part is read as Markdown: one line, lines that are just not too long, spaces.
LONG = (
    "**a " * 260_000,
    ("**a " * 999 + "\n") * 260,
    "# |" + " " * 1_000_000 + "x\n| " + " " * 1_000_000,
)


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """What the question names: look, wait in mid-sentence, propose, or write what is hostile."""
    asked = question_of(request)
    if "hostile" in asked:
        return Round(text=(HOSTILE,))
    if "propose" in asked and not results(request):
        params = {"version": asked.rpartition(" ")[2]}
        return Round(calls=(Call("core__propose_action", ROLLBACK | {"params": params}),))
    if "list" in asked:
        return Round(
            text=(f"{HEADLINE}\n\n", f"{WIDE}\n\n", f"{ITEMS}\n", "\nThat is all."),
            hold=HELD,
            hold_at=4,
        )
    if "slow" in asked and not results(request):
        return Round(
            calls=(Call("core__compare_to_baseline", P99), Call("core__error_patterns", PATTERNS))
        )
    if "rows" in asked:
        return Round(text=(f"{HEADLINE}\n\n{WIDE}\n",))
    return Round(text=("The p99 rose ", "[E1] [E2]. "), hold=HELD, hold_at=2)


class Down(SlackRequestGate):
    """Slack's front request_gate, shut."""

    def take(self, method: str, tier: int | None, channel: str) -> None:
        raise SlackRefused("service_unavailable")


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    HELD.set()
    shared_stage.plane.received.clear()
    shared_stage.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
    return shared_stage


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def _proposed(stage: Stage, http: aiohttp.ClientSession, version: str) -> None:
    """A card of someone else's, over HTTP."""
    api = await caller(stage, http, "noor", "responder")
    await api.ask(await api.open(), f"propose {version}")


def _card(page: Page, version: str) -> Locator:
    return page.locator("#open-cards article").filter(has_text=version)


async def test_an_answer_grows_and_opens_on_its_evidence(stage: Stage, visit: Visit) -> None:
    HELD.clear()
    token = await token_for(stage, "mira", "responder")
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(token)
        await visitor.ask("why is checkout slow?")
        await expect(page.locator(".answer")).to_contain_text("The p99 rose")
        await expect(page.get_by_text("Kortex is working on this")).to_be_visible()
        HELD.set()
        await expect(page.locator(".foot")).to_contain_text("test-model")
        await expect(page.get_by_text("Kortex is working on this")).to_have_count(0)

        panel = page.locator("details.evidence")
        await expect(panel.locator("summary")).to_have_text("Evidence (2 calls)")
        await expect(panel.get_by_role("list")).to_be_hidden()
        await panel.locator("summary").click()
        await expect(panel.locator("[data-evidence=E2]")).to_be_visible()
        await expect(page.locator("#conversations a").first).to_contain_text(
            "why is checkout slow?"
        )

        await page.locator(".answer").get_by_role("button", name="Open result E1").click()
        shown = page.get_by_role("dialog")
        await expect(shown.locator("svg .line")).to_have_count(2)  # what is usual as well
        drawn = shown.get_by_role("img", name="E1 checkout http_request_duration_seconds_p99")
        await expect(drawn).to_be_visible()
        await expect(shown.locator(".below")).to_contain_text("unusual since")
        await page.keyboard.press("Escape")
        await page.locator(".answer").get_by_role("button", name="Open result E2").click()
        await expect(shown.locator("table tbody tr").first).to_be_visible()
        await page.keyboard.press("Escape")

        assert token not in await page.content()
        assert await page.evaluate("document.cookie") == ""
        kept = await page.evaluate("JSON.stringify([localStorage, sessionStorage])")
        assert token not in kept
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("Token")).to_be_focused()
        assert await page.context.cookies() == []


async def test_a_card_is_confirmed_by_keyboard_alone_and_runs_once(
    stage: Stage, visit: Visit, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _proposed(stage, http, "v1.0.1")
    monkeypatch.setattr(stage.workspace, "request_gate", Down())
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        card = _card(page, "v1.0.1")
        await card.get_by_role("button", name="Confirm").focus()
        await page.keyboard.press("Enter")
        shown = page.get_by_role("dialog")
        await expect(shown).to_contain_text("version: v1.0.1")
        await expect(shown.get_by_role("button", name="Not now")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(card.get_by_role("button", name="Confirm")).to_be_focused()
        assert stage.plane.received == []

        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(card.locator(".chip")).not_to_have_text("pending")
        await visitor.come_back()
        await expect(card.locator(".chip")).to_have_text("succeeded")
        await expect(card).to_contain_text('"rolled_back_to": "v2.3.7"')
        (order,) = stage.plane.received
        assert orjson.loads(order.body)["confirmed_by"] == "@person/mira"


async def test_the_result_of_a_card_is_a_block_and_the_card_stops_waiting(
    stage: Stage, visit: Visit
) -> None:
    stage.plane.post = says(200, {"rolled_back_to": "v2.3.7", "by": "*a* <b>b</b> `c`"})
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        await visitor.ask("propose v1.0.8")
        await _card(page, "v1.0.8").get_by_role("button", name="Confirm").click()
        await page.get_by_role("dialog").get_by_role("button", name="Confirm").click()
        note = page.locator(".turns .note")
        await expect(note).to_contain_text("succeeded.")
        await expect(note.locator("pre")).to_have_text(
            re.compile("rolled_back_to: v2.3.7\n.*<b>b</b>", re.DOTALL)
        )
        await expect(note).not_to_contain_text("```")
        await expect(note.locator("b, em, strong")).to_have_count(0)

        await visitor.come_back()
        await expect(_card(page, "v1.0.8").locator(".chip")).to_have_text("succeeded")
        # Other tests may have left cards that wait, so the line for an empty list is not looked at.
        await expect(page.locator("#open-cards").get_by_text("v1.0.8")).not_to_have_count(0)
        await page.reload()
        await expect(page.locator(".turns .note pre")).to_be_visible()
        await expect(page.locator("#open-cards").get_by_text("v1.0.8")).to_have_count(0)
        assert await visitor.faults() == []


async def test_a_card_is_rejected_with_a_reason_unless_another_press_came_first(
    stage: Stage, visit: Visit, http: aiohttp.ClientSession
) -> None:
    await _proposed(stage, http, "v1.0.2")
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        await _card(page, "v1.0.2").get_by_role("button", name="Reject").click()
        await page.get_by_label("Reason (optional").fill("traffic is back")
        await page.get_by_role("dialog").get_by_role("button", name="Reject").click()
        await expect(_card(page, "v1.0.2").locator(".chip")).to_have_text("rejected")
        await expect(_card(page, "v1.0.2")).to_contain_text("traffic is back")

        await page.route("**/api/v1/proposals", lambda route: route.fulfill(status=503))
        await visitor.come_back()
        await expect(page.get_by_role("alert")).to_contain_text("This page is from")
        await page.unroute("**/api/v1/proposals")
        await _proposed(stage, http, "v1.0.3")
        await visitor.come_back()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await _card(page, "v1.0.3").get_by_role("button", name="Confirm").click()
        noor = await caller(stage, http, "noor", "responder")
        rows = (await noor.call("GET", "/api/v1/proposals"))[1]["proposals"]
        (row,) = (each for each in rows if each["params"]["version"] == "v1.0.3")
        await noor.call("POST", f"/api/v1/proposals/{row['id']}/reject", {})
        await page.get_by_role("dialog").get_by_role("button", name="Confirm").click()
        await expect(_card(page, "v1.0.3").locator(".said")).to_contain_text("noor")
        assert stage.plane.received == []


async def test_slack_channels_and_people_have_names_and_links(stage: Stage, visit: Visit) -> None:
    asked = await stage.ask("@kortex propose v1.0.7", RESPONDER)
    await stage.answer(asked)
    await stage.card(asked)
    await stage.answer(await stage.ask("all right?", RESPONDER, DIRECT))
    name = stage.workspace.roster.users[RESPONDER].name
    thread = f"https://kortex-local.slack.com/archives/{asked.channel}/p"
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "boss", "lead", "responder"))
        card = _card(page, "v1.0.7")
        await expect(card.get_by_text(f"{name}", exact=True)).to_be_visible()
        await expect(card.get_by_role("link", name="#incident-checkout")).to_have_attribute(
            "href", re.compile(re.escape(thread))
        )
        await expect(card).to_contain_text("just now")
        await page.get_by_role("link", name="Activity").click()
        row = page.get_by_role("row").filter(has=page.locator(f"a[href^='{thread}']")).first
        await expect(row).to_contain_text("#incident-checkout, ")
        await expect(row).to_contain_text(name)
        direct = page.get_by_role("rowheader", name="direct message", exact=True)
        await expect(direct).to_be_visible()
        await expect(page.locator("#main")).not_to_contain_text(RESPONDER)
        await page.get_by_role("link", name="Budget").click()
        people = page.get_by_role("region", name="By user").get_by_role("rowheader")
        # With her id behind it, where her token has been used here as well.
        person = people.filter(has_text=re.compile(rf"^{name}( \({RESPONDER}\))?$"))
        await expect(person).to_be_visible()
        channels = page.get_by_role("region", name="By channel")
        await expect(channels.get_by_role("rowheader", name="#incident-checkout")).to_be_visible()
        threads = page.get_by_role("region", name="By session")
        await expect(threads.get_by_role("link", name="#incident-checkout, ").first).to_be_visible()
        await expect(threads.locator(f"a[href^='{thread}']").first).to_be_visible()
        main = page.locator("#main")
        await expect(main).not_to_contain_text(re.compile("session:|@direct"))


async def test_a_card_shows_its_effect_and_the_json_behind_a_button(
    stage: Stage, visit: Visit, http: aiohttp.ClientSession
) -> None:
    await _proposed(stage, http, "v1.0.9")
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        card = _card(page, "v1.0.9")
        raw = card.locator("details.raw")

        await expect(card.get_by_role("heading")).to_have_text("Roll back checkout to v1.0.9")
        await expect(card.locator(".values")).to_have_text("version: v1.0.9")
        await expect(raw.locator("pre").first).to_be_hidden()
        await raw.locator("summary").click()
        await expect(raw.locator("pre").first).to_contain_text('"version": "v1.0.9"')


async def test_a_card_of_an_undeployed_version_warns_before_it_runs(
    stage: Stage, visit: Visit, http: aiohttp.ClientSession
) -> None:
    await _proposed(stage, http, "v9.9.9")
    edited = "UPDATE proposals SET supersedes = 'p_0' WHERE params LIKE '%v9.9.9%'"
    await stage.change(edited)
    async with visit() as visitor:
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        card = _card(visitor.page, "v9.9.9")
        warning = "Version v9.9.9 was not deployed to checkout"

        await expect(card).to_contain_text(warning)
        await card.get_by_role("button", name="Confirm").click()
        await expect(visitor.page.get_by_role("dialog")).to_contain_text(warning)


async def held_answer(visitor: Visitor, stage: Stage) -> Page:
    """A long answer that is written to its last word, and does not end yet."""
    HELD.clear()
    await visitor.sign_in(await token_for(stage, "mira", "responder"))
    await visitor.ask("list the pods")
    await expect(visitor.page.locator(".answer")).to_contain_text("service-59")
    return visitor.page


async def top_of(found: Locator) -> float:
    return float(await found.evaluate("(each) => each.getBoundingClientRect().top"))


@pytest.mark.parametrize("size", [(390, 844), (800, 900), (1440, 900)], ids=str)
async def test_a_long_answer_keeps_its_headline_in_sight_and_the_rest_behind_evidence(
    stage: Stage, visit: Visit, size: tuple[int, int]
) -> None:
    async with visit(size) as visitor:
        page = await held_answer(visitor, stage)
        HELD.set()
        await expect(page.locator(".left-out")).to_have_text("88 more lines behind Evidence")

        answer = page.locator(".answer")
        await expect(answer.get_by_text(HEADLINE)).to_be_in_viewport()
        assert await answer.locator("li").count() == 5
        assert await answer.locator("table").count() == 0
        assert await answer.evaluate("(each) => each.offsetHeight") < 400
        await page.locator(".evidence summary").click()
        whole = page.locator(".whole")
        await expect(whole).to_contain_text("service-59")
        widths = "(each) => [each.offsetWidth, each.closest('.turn').offsetWidth]"
        for each in (whole, whole.locator(".table")):
            own, turn = await each.evaluate(widths)
            assert own == turn <= size[0]
        assert await visitor.faults() == []


async def test_many_unbacked_statements_are_counted_and_listed_on_request(
    stage: Stage, visit: Visit
) -> None:
    async with visit(PHONE) as visitor:
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        await visitor.ask("why is it slow? as rows")
        doubts = visitor.page.locator(".doubts")

        await expect(doubts.locator("summary")).to_have_text(
            re.compile(r"[123]\d statements not backed by the evidence")
        )
        await expect(doubts.get_by_role("list")).to_be_hidden()
        await doubts.locator("summary").click()
        await expect(doubts.get_by_role("list")).to_contain_text(
            "checkout-0, Running, node-0 (not in any result"
        )


async def test_a_reader_of_the_rest_stays_at_the_line_when_the_answer_ends(
    stage: Stage, visit: Visit
) -> None:
    async with visit(PHONE) as visitor:
        page = await held_answer(visitor, stage)
        line = page.locator(".answer").get_by_text("service-30 runs")
        await line.evaluate("(each) => each.scrollIntoView({ block: 'start' })")
        before = await top_of(line)
        HELD.set()
        moved = page.locator(".whole").get_by_text("service-30 runs")

        await expect(moved).to_be_in_viewport()
        assert abs(await top_of(moved) - before) < 30


async def test_a_person_without_the_role_gets_a_message_and_no_reports(
    stage: Stage, visit: Visit
) -> None:
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "intern", "asker"), "#/audit")
        await expect(page.get_by_role("heading", name="What is wrong?")).to_be_visible()
        await expect(page.locator("#tabs a:visible")).to_have_text(["Ask"])
        await visitor.ask("propose v1.0.4")
        card = _card(page, "v1.0.4")
        await expect(card).to_contain_text("You hold none of its roles (responder)")
        await expect(card.get_by_role("button")).to_have_count(0)


async def test_a_revoked_token_closes_the_page(stage: Stage, visit: Visit) -> None:
    async with visit() as visitor:
        page = visitor.page
        await page.goto(visitor.origin)
        await page.get_by_label("Token").fill("kortex_" + "0" * 43)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("is unknown, expired or revoked")
        await visitor.sign_in(await token_for(stage, "leaver", "responder"))
        await visitor.ask("all right?")
        await expect(page.locator(".foot")).to_be_attached()

        stored = stage.service.base.stores.callers
        (entry,) = [each for each in await stored.tokens() if each.caller.name == "leaver"]
        await stored.revoke(entry.id, "cli:test")
        await visitor.come_back()
        await expect(page.get_by_text("your token expired or was revoked")).to_be_visible()
        assert "all right?" not in await page.content()


async def test_hostile_text_stays_text(stage: Stage, visit: Visit) -> None:
    async with visit() as visitor:
        page = visitor.page
        await visitor.sign_in(await token_for(stage, "mira", "responder"))
        await visitor.ask(f"hostile {HOSTILE}")
        await expect(page.locator(".foot")).to_be_attached()
        await expect(page.locator(".question")).to_contain_text("<script>")
        await page.locator(".evidence summary").click()
        assert await page.evaluate("window.hacked") is None
        assert await page.locator("#main :is(img, script, svg, iframe)").count() == 0
        links = await page.locator(".whole a").evaluate_all(
            "(all) => all.map((a) => [a.protocol, a.rel, a.getAttributeNames().length])"
        )
        assert {(link[0], link[1], link[2]) for link in links} == {
            ("https:", "noopener noreferrer", 3)
        }
        hrefs = await page.locator(".whole a").evaluate_all("(all) => all.map((a) => a.href)")
        assert hrefs == ["https://runbooks.example.com/checkout"]
        shown_text = await page.locator(".whole").inner_text()
        assert [address for address in DISGUISED if address not in shown_text] == []
        assert "\u202e" not in await page.inner_text("#main")
        written = '{"n":340282366920938463463374607431768211455,"e":[],"t":"a\\"b:{,"}'
        shown = await page.evaluate(
            "async (json) => (await import('/page/words.js')).indented(json)", written
        )
        assert re.sub(r"\s", "", shown) == written
        assert shown.count("\n") == 4
        took_ms = await page.evaluate(
            """async (texts) => {
                const { markdown } = await import('/page/text.js');
                const before = performance.now();
                for (const text of texts) document.createElement('div').innerHTML = markdown(text.slice(0, 100_000));
                return performance.now() - before;
            }""",
            LONG,
        )
        assert took_ms < 3_000  # one of them took minutes


async def test_the_page_is_accessible_in_light_dark_and_on_a_phone(
    stage: Stage, visit: Visit, http: aiohttp.ClientSession
) -> None:
    await _proposed(stage, http, "v1.0.5")
    token = await token_for(stage, "head", "responder", "lead")
    async with visit(PHONE, color_scheme="dark") as visitor:
        page = visitor.page
        await page.goto(visitor.origin)
        await expect(page.get_by_label("Token")).to_be_visible()
        found = {"sign in": await visitor.faults()}
        await visitor.sign_in(token)
        await visitor.ask("why is checkout slow?")
        await expect(page.locator(".foot")).to_be_attached()
        found["conversation"] = await visitor.faults()
        await page.get_by_role("button", name="Open result E1").click()
        await expect(page.locator("dialog svg")).to_be_visible()
        found["evidence"] = await visitor.faults()
        await page.keyboard.press("Escape")
        await visitor.see("#/cards")
        await expect(_card(page, "v1.0.5")).to_be_visible()
        found["cards"] = await visitor.faults()
        for name in ("activity", "providers", "budget", "tools", "audit"):
            await visitor.see(f"#/{name}")
            await expect(page.locator(".report :is(table, dl)").first).to_be_visible()
            found[name] = await visitor.faults()
        await expect(page.locator(".verdict")).to_contain_text("The audit log is valid")
        await page.emulate_media(color_scheme="light")
        await page.set_viewport_size({"width": 1280, "height": 900})
        found["wide"] = await visitor.faults()
        assert {name: faults for name, faults in found.items() if faults} == {}
