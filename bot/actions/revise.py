"""What a person may change of an open proposal: its parameters, as a form and back. Pure.

An edited proposal is a new one that supersedes the old; `bot.actions.decide` carries that out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import orjson
from pydantic import JsonValue

from bot.actions.catalog import Action, ActionCatalog
from bot.actions.propose import checked_params
from bot.domain.ids import Person, UserId
from bot.domain.proposal import Proposal, ProposalState, digest, proposal_id
from bot.ports.platform import PlatformTraits
from bot.ports.proposals import Decision, FormField
from tools.errors import InvalidArguments
from tools.redactor import RedactionFailed, Redactor

MAX_FIELDS: Final = 20  # beyond that a form is longer than the JSON
_WHOLE: Final = "params"


class Revisions:
    """Form fields of an open proposal, by its declared action. Both methods raise InvalidArguments."""

    def __init__(
        self, catalog: ActionCatalog, redactor: Redactor, platform: PlatformTraits
    ) -> None:
        self._platform = platform
        self._catalog = catalog
        self._redactor = redactor

    def form(self, proposal: Proposal) -> Sequence[FormField]:
        action = self._catalog.find(proposal.action, proposal.product)
        params = orjson.loads(proposal.params)
        scalars = _scalars(action, params)
        if scalars is None:
            return (FormField(_WHOLE, action.schema.in_words(), proposal.params, "json"),)
        required = action.schema.required
        return tuple(
            FormField(name, name, _shown(params.get(name)), kind, optional=name not in required)
            for name, kind in scalars.items()
        )

    def read(self, proposal: Proposal, answers: Mapping[str, str]) -> str:
        """The changed parameters as canonical JSON, checked like a model's."""
        action = self._catalog.find(proposal.action, proposal.product)
        scalars = _scalars(action, orjson.loads(proposal.params))
        typed = (
            _whole(answers.get(_WHOLE, ""))
            if scalars is None
            else {
                name: _typed(name, kind, text)
                for name, kind in scalars.items()
                if (text := answers.get(name, "")) != ""
            }
        )
        params = checked_params(typed, self._platform)
        self._catalog.check_params(action, typed)
        if params == proposal.params:
            raise InvalidArguments("nothing was changed; press Confirm or Reject on the card")
        self._check_secret(params)
        return params

    def _check_secret(self, params: str) -> None:
        try:
            if self._redactor.redact(params) == params:
                return
        except RedactionFailed:
            pass
        raise InvalidArguments(
            "this holds a secret or personal data, which no action accepts from a conversation"
        )


def successor(row: Proposal, decision: Decision) -> Proposal:
    """The proposal that takes the place of an edited one, asked for by the person who edited it.

    The store sets its times.
    """
    content = digest(row.action, row.product, decision.params)
    return replace(
        row,
        id=proposal_id(row.turn_id, decision.key, content),
        asked_by=Person(row.place.team, UserId(decision.by)),
        params=decision.params,
        digest=content,
        state=ProposalState.PENDING,
        card_ts=None,
        votes=(),
        supersedes=row.id,
    )


def _scalars(action: Action, params: Mapping[str, JsonValue]) -> Mapping[str, str] | None:
    scalars = action.schema.scalars()
    if scalars is None or len(scalars) > MAX_FIELDS or not params.keys() <= scalars.keys():
        return None
    return scalars


def _shown(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _typed(name: str, kind: str, text: str) -> JsonValue:
    if kind == "string":
        return text
    try:
        value: JsonValue = orjson.loads(text.strip())
    except orjson.JSONDecodeError:
        value = None
    # The schema checks the value; null is not an answer.
    if value is None:
        raise InvalidArguments(f"{name}: must be a {kind}")
    return value


def _whole(text: str) -> dict[str, JsonValue]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidArguments(f"this is not JSON: {error.msg}") from error
    if not isinstance(value, dict):
        raise InvalidArguments("params are one JSON object")
    return value
