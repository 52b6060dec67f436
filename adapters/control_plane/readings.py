"""What a control plane's or Kubernetes' JSON says of a target: a count of objects, a fingerprint.

Pure. An answer that does not clearly say it is refused: an uncounted target is not a small one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.control_plane.port import Objects, ProbeFailed

MAX_NAMES: Final = 50
MAX_FACT_CHARS: Final = 300
_LISTS: Final = ("objects", "items", "targets")
# Kubernetes: generation counts every change of the spec (API conventions, "metadata.generation").
_KUBERNETES: Final = (
    "metadata.generation",
    "spec.replicas",
    "spec.template.spec.containers.image",
)
_CONTROL_PLANE: Final = ("config_hash", "version")


def objects_in(answer: JsonValue) -> Objects:
    """From a number, a list, `{"count": 2}`, `{"objects": [...]}` or a Kubernetes list.

    Raises ProbeFailed for anything else.
    """
    match answer:
        case int() if not isinstance(answer, bool) and answer >= 0:
            return Objects(answer)
        case list():
            return Objects(len(answer), _names(answer))
        case dict():
            return _objects_of(answer)
        case _:
            raise ProbeFailed("its count is neither a number nor a list of objects")


def _objects_of(answer: Mapping[str, JsonValue]) -> Objects:
    listed = next((v for key in _LISTS if isinstance(v := answer.get(key), list)), None)
    names = _names(listed or [])
    given = answer.get("count")
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return Objects(max(given, len(listed or [])), names)
    if listed is None:
        raise ProbeFailed("its count has neither `count` nor a list of `objects`")
    return Objects(len(listed) + _left_out(answer.get("metadata")), names)


def _left_out(metadata: JsonValue) -> int:
    """How many a paged Kubernetes list does not hold."""
    page = metadata if isinstance(metadata, dict) else {}
    if not page.get("continue"):
        return 0
    remaining = page.get("remainingItemCount")
    if isinstance(remaining, int):
        return remaining
    raise ProbeFailed("its list of objects is cut and does not say how many are left")


def _names(listed: Sequence[JsonValue]) -> tuple[str, ...]:
    return tuple(name for each in listed[:MAX_NAMES] if (name := _name(each)))


def _name(each: JsonValue) -> str:
    if isinstance(each, str):
        return each
    if not isinstance(each, dict):
        return ""
    metadata = each.get("metadata")
    named = each.get("name") or (metadata.get("name") if isinstance(metadata, dict) else "")
    return named if isinstance(named, str) else ""


def facts_in(answer: JsonValue, fields: Sequence[str] = ()) -> Mapping[str, str]:
    """The named fields of the answer, or the usual ones of a control plane or Kubernetes.

    Raises ProbeFailed when a named field is missing, or none of the usual ones is there.
    """
    if not isinstance(answer, dict):
        raise ProbeFailed("its state is not a JSON object")
    wanted = fields or (_KUBERNETES if "metadata" in answer else _CONTROL_PLANE)
    facts = {path: text for path in wanted if (text := _fact(answer, path.split("."))) is not None}
    if not facts or (fields and len(facts) < len(wanted)):
        raise ProbeFailed(f"its state lacks {', '.join(p for p in wanted if p not in facts)}")
    return facts


def _fact(value: JsonValue, path: Sequence[str]) -> str | None:
    """The text at the path; of a list, every element's."""
    if isinstance(value, list) and path:
        each = [text for item in value if (text := _fact(item, path)) is not None]
        return ", ".join(each) or None
    if not path:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return text if len(text) <= MAX_FACT_CHARS else _hashed(text)
    if not isinstance(value, dict) or path[0] not in value:
        return None
    return _fact(value[path[0]], path[1:])


def _hashed(text: str) -> str:
    """Short, and still another one when any character is."""
    return f"{text[:60]}… sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
