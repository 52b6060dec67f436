"""Images of a question: models that see get them; other models, and people, get a note.

They are read again at every resume, and stored nowhere. A note says that a model's words about an
image cannot be checked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from adapters.llm.messages import CompleteRequest, Message, Picture
from adapters.llm.port import Provider
from bot.chat.models import KnownModel, uses_model
from bot.domain.ids import Place
from tools.attached import AttachedFile

MOST_IMAGES: Final = 3  # of a message
_TOO_MANY: Final = f"I read at most {MOST_IMAGES} images of a message"
_SEEN: Final = "the description of the image "

# Never raises: what cannot be read says why.
PictureOf = Callable[[AttachedFile], Awaitable[Picture]]
PictureAt = Callable[[Place, AttachedFile], Awaitable[Picture]]  # by where it was attached


async def no_picture(file: AttachedFile) -> Picture:
    return Picture(file.name, why_not="images are not read here")


async def no_picture_at(_place: Place, file: AttachedFile) -> Picture:
    return await no_picture(file)


async def withheld(file: AttachedFile) -> Picture:
    return Picture(file.name, why_not="images are not sent to models here (`send_images`)")


async def pictures_of(files: Sequence[AttachedFile], picture_of: PictureOf) -> tuple[Picture, ...]:
    """Those among the files, in their order; the first few are read."""
    images = [each for each in files if each.is_image]
    read = await asyncio.gather(*map(picture_of, images[:MOST_IMAGES]))
    left = [Picture(each.name, why_not=_TOO_MANY) for each in images[MOST_IMAGES:]]
    return (*read, *left)


def as_seen(
    request: CompleteRequest, provider: Provider, model: KnownModel
) -> tuple[CompleteRequest, tuple[str, ...]]:
    """The request as that model can take it, and what people should know of its images."""
    told: dict[str, None] = {}
    if not any(message.images for message in request.messages):
        return request, ()
    blind = "" if model.sees_images else _blindness(provider)
    messages = [_as_seen(message, blind, told) for message in request.messages]
    if not uses_model(provider):  # it reads the question by fixed rules
        messages = [replace(message, images=()) for message in request.messages]
    return replace(request, messages=tuple(messages)), tuple(told)


def has_seen(notices: Sequence[str]) -> bool:
    """Whether the notices say that a model saw an image."""
    return any(notice.startswith(_SEEN) for notice in notices)


def _as_seen(message: Message, blind: str, told: dict[str, None]) -> Message:
    seen, unseen = [], []
    for picture in message.images:
        why_not = picture.why_not or blind
        if why_not:
            told[f"I did not read the image {picture.name}: {why_not}"] = None
            unseen.append(f"(An image is attached that you cannot see: {picture.name}.)")
        else:
            told[f"{_SEEN}{picture.name} comes from the model, not from a measurement"] = None
            seen.append(picture)
    text = "\n\n".join([message.text, *unseen])
    return replace(message, text=text, images=tuple(seen))


def _blindness(provider: Provider) -> str:
    return f"{provider.name} does not see images" if uses_model(provider) else "no model was used"
