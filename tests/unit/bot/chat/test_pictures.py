"""Images reach models that see; other models, and people, get a notice of the rest."""

from adapters.llm.messages import CompleteRequest, Message, Picture, Role
from bot.chat.attachments import as_seen, has_seen, no_picture, pictures_of, withheld
from bot.chat.models import KnownModel
from bot.chat.round_budget import most_tokens
from bot.chat.window import IMAGE_TOKENS, estimate_tokens
from tests.fakes.scripted_provider import ScriptedProvider
from tools.attached import AttachedFile

SHOT = Picture("shot.png", "image/png", "aGVsbG8=")
GONE = Picture("gone.png", why_not="it was deleted")
EYES, BLIND = KnownModel("m", 9, sees_images=True), KnownModel("m", 9)
PROVIDER = ScriptedProvider([])
NO_MODEL = ScriptedProvider([], name="triage")


def asked(*images: Picture) -> CompleteRequest:
    return CompleteRequest("s", (Message(Role.USER, "What?", images=images),))


def file(number: int, media: str = "image/png") -> AttachedFile:
    return AttachedFile(f"F{number}", f"{number}.png", media)


def test_a_vision_model_gets_the_images_with_a_notice_that_nothing_was_measured() -> None:
    request, told = as_seen(asked(SHOT, GONE), PROVIDER, EYES)

    assert request.messages[0].images == (SHOT,)
    assert request.messages[0].text == (
        "What?\n\n(An image is attached that you cannot see: gone.png.)"
    )
    assert told == (
        "the description of the image shot.png comes from the model, not from a measurement",
        "I did not read the image gone.png: it was deleted",
    )
    assert has_seen(told)


def test_a_text_model_learns_that_there_is_an_image() -> None:
    request, told = as_seen(asked(SHOT), PROVIDER, BLIND)

    assert request.messages[0].images == ()
    assert "cannot see: shot.png" in request.messages[0].text
    assert told == ("I did not read the image shot.png: scripted does not see images",)
    assert not has_seen(told)


def test_without_a_model_the_question_is_unchanged() -> None:
    request, told = as_seen(asked(SHOT), NO_MODEL, BLIND)

    assert request == asked()
    assert told == ("I did not read the image shot.png: no model was used",)


def test_a_question_without_images_is_unchanged() -> None:
    assert as_seen(asked(), PROVIDER, BLIND) == (asked(), ())


async def test_the_first_three_images_are_read() -> None:
    files = [file(1), file(9, "text/plain"), *(file(n) for n in range(2, 6))]

    async def read(each: AttachedFile) -> Picture:
        return Picture(each.name, "image/png", "x")

    found = await pictures_of(files, read)

    assert [(each.name, bool(each.data)) for each in found] == [
        ("1.png", True), ("2.png", True), ("3.png", True), ("4.png", False), ("5.png", False),
    ]  # fmt: skip


async def test_unread_images_have_a_reason() -> None:
    assert (await no_picture(file(1))).why_not
    assert "send_images" in (await withheld(file(1))).why_not


def test_an_image_counts_towards_window_and_budget() -> None:
    with_one, without = asked(SHOT), asked()

    more = estimate_tokens(with_one.messages) - estimate_tokens(without.messages)
    assert IMAGE_TOKENS <= more < IMAGE_TOKENS + 5
    assert most_tokens(with_one) - most_tokens(without) == IMAGE_TOKENS
