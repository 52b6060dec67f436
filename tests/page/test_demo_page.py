"""The demo's page in a browser: the headline in sight, the open thread kept, hints that hold."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from bot.demo.running import demo_running
from bot.demo.workspace.seeds import ARCHIVED, BOTLESS, CHECKOUT, PAYMENTS, QUIET
from tests.fixtures_page import DESKTOP, browser
from tests.zones import zones_in

__all__ = ["browser"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEADLINE = "Most likely cause: the deploy of checkout"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def origin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    folder: Path = tmp_path_factory.mktemp("demo")
    async with demo_running(folder, 0, pace_s=0.0) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, origin: str) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
    page = await context.new_page()
    await _open(page, f"{origin}/?channel={CHECKOUT}")
    yield page
    await context.close()


async def _open(page: Page, address: str) -> None:
    """Go there, and wait until the page is drawn: what is typed before is lost."""
    await page.goto(address)
    await expect(page.locator("#channel-name")).not_to_have_text("…")


async def _ask(page: Page) -> Locator:
    """Ask in a new thread, and return the thread with its answer.

    The card is in the first thread of the channel: an open proposal is not proposed again.
    """
    await page.locator("#composer-text").fill("@kortex why is checkout slow?")
    await page.locator("#composer-text").press("Enter")
    thread = page.locator("#thread-messages")
    await expect(thread.get_by_role("button", name="Evidence")).to_be_visible()
    return thread


async def test_the_headline_is_visible_after_an_answer_and_the_thread_survives_a_switch(
    page: Page,
) -> None:
    thread = await _ask(page)

    headline = thread.get_by_text(HEADLINE).first
    await expect(headline).to_be_in_viewport()
    await expect(thread.get_by_role("button", name="Evidence")).to_have_count(1)

    await page.locator("#person").select_option(index=1)
    await expect(page.locator("#thread")).to_be_visible()
    await expect(headline).to_be_attached()


@pytest.mark.parametrize(
    ("channel", "question", "charts"),
    [
        (CHECKOUT, "why is checkout slow?", 1),
        (PAYMENTS, "why do payments time out?", 1),
        (PAYMENTS, "show me the errors of payments-db", 0),
        (QUIET, "is anything unusual here?", 0),
    ],
)
async def test_the_text_of_an_answer_fits_a_phone_with_one_chart_and_one_row_of_buttons(
    page: Page, origin: str, channel: str, question: str, charts: int
) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await _open(page, f"{origin}/?channel={channel}")
    await page.locator("#composer-text").fill(f"@kortex {question}")
    await page.locator("#composer-text").press("Enter")
    answer = page.locator("#thread-messages > *", has=page.get_by_role("button", name="Evidence"))
    await expect(answer).to_have_count(1)

    text = answer.locator(".md:not(details .md)")
    lines = await text.locator("li").count()
    heights: list[int] = await text.evaluate_all("all => all.map(each => each.offsetHeight)")
    room: int = await page.locator("#thread-scroll").evaluate("each => each.clientHeight")
    assert lines <= 5
    assert sum(heights) <= room
    assert zones_in(" ".join(await text.all_inner_texts())) <= {"UTC"}
    await expect(answer.locator("figure")).to_have_count(charts)
    await expect(answer.get_by_role("button", name="Evidence")).to_have_count(1)


async def test_the_lines_of_a_result_wrap_within_the_view(page: Page) -> None:
    thread = await _ask(page)
    await thread.get_by_role("button", name="Evidence").click()
    await page.get_by_role("button", name="Open E2").click()

    lines = page.locator("dialog[open] pre")
    await expect(lines.first).to_be_visible()
    hidden = await lines.evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth).length"
    )
    assert hidden == 0


async def test_a_new_card_warns_of_an_undeployed_version(
    page: Page,
) -> None:
    thread = await _ask(page)
    await page.locator("#messages .replies").first.click()
    await expect(thread.get_by_text("Roll back checkout: v2.4.0 → v2.3.7").first).to_be_attached()
    await thread.get_by_role("button", name="Edit").last.click()
    form = page.get_by_role("dialog")
    await form.get_by_label("version").fill("v9.9.9")
    await form.get_by_role("button", name="Propose").click()

    await expect(thread).to_contain_text("Version v9.9.9 was not deployed to checkout")


@pytest.mark.parametrize(
    ("channel", "said"),
    [(BOTLESS, "until then it reads nothing here"), (ARCHIVED, "This channel is archived")],
)
async def test_a_channel_without_askers_does_not_ask_for_a_mention(
    page: Page, origin: str, channel: str, said: str
) -> None:
    await page.goto(f"{origin}/?channel={channel}")

    await expect(page.locator("#intro")).to_contain_text(said)
    await expect(page.locator("#intro")).not_to_contain_text("Mention @kortex")


@pytest.mark.parametrize(
    ("act", "undo"),
    [
        ("Remove Kortex from channel", "Invite Kortex to channel"),
        ("Archive channel", "Unarchive channel"),
    ],
)
async def test_a_channel_that_kortex_left_or_that_was_archived_has_no_hint_to_ask(
    page: Page, origin: str, act: str, undo: str
) -> None:
    await _open(page, f"{origin}/?channel={PAYMENTS}")
    await _from_menu(page, act)
    await expect(page.locator("#channel-topic")).to_contain_text(" · ")
    await _open(page, f"{origin}/?channel={PAYMENTS}")

    await expect(page.locator("#suggestion")).to_be_hidden()
    await expect(page.locator("#hint")).to_be_hidden()
    await expect(page.locator("#composer-text")).to_have_value("")
    await _from_menu(page, undo)
    await expect(page.locator("#channel-topic")).not_to_contain_text(" · ")


async def _from_menu(page: Page, name: str) -> None:
    await page.locator("#channel-menu summary").click()
    await page.get_by_role("button", name=name).click()


async def test_a_command_from_a_hint_works_in_a_thread_too(page: Page) -> None:
    await _ask(page)
    await page.locator("#thread-text").fill("/kortex help")
    await page.locator("#thread-text").press("Enter")

    await expect(page.locator("#messages")).to_contain_text("/kortex")
    await expect(page.locator("#thread-trouble")).to_be_hidden()


async def test_a_thread_without_a_card_has_no_hint_to_press_one(page: Page) -> None:
    await _ask(page)
    await page.locator("#composer-text").fill("@kortex show me the error logs of checkout")
    await page.locator("#composer-text").press("Enter")
    await expect(page.locator("#thread-title")).to_contain_text("error logs")
    thread = page.locator("#thread-messages")
    await expect(thread.get_by_role("button", name="Evidence")).to_be_visible()

    await expect(page.locator("#thread-hint")).to_be_hidden()
    await page.locator("#messages .replies").first.click()
    await expect(page.locator("#thread-hint")).to_contain_text("Confirm")


@pytest.mark.parametrize("width", [390, 800, 920, 1100])
async def test_beside_an_open_thread_nothing_is_covered_or_cut(page: Page, width: int) -> None:
    await _ask(page)
    await page.set_viewport_size({"width": width, "height": 900})

    for column in ("main", "thread"):
        await expect(page.locator(f"#{column} .send")).to_have_count(1)
    beyond = await page.locator(".composer, .composer *, .bar, .msg").evaluate_all(
        """all => all.filter(each => {
          const column = each.closest(".main, .thread").getBoundingClientRect();
          const {right, width} = each.getBoundingClientRect();
          return width > 0 && right > column.right + 1;
        }).map(each => each.outerHTML)"""
    )
    assert beyond == []
