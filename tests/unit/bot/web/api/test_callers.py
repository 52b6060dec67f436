"""Who calls: three kinds of tokens, claims as callers, and how often anybody may ask."""

import pytest
from pydantic import JsonValue

from bot.domain.callers import OPERATOR, CallerKind
from bot.domain.ids import API, TeamId, UserId
from bot.web.api.callers import ClaimRules, Denied, Rate, token_of

RULES = ClaimRules("email", "groups", {"sre": "responder", "boss": "lead"}, "slack")
CLAIMS: dict[str, JsonValue] = {
    "iss": "https://issuer",
    "sub": "1",
    "email": "ann@example.com",
    "groups": ["sre", "x"],
}


def test_claims_become_a_person_with_the_configured_roles() -> None:
    caller = RULES.caller(CLAIMS)

    assert (caller.kind, caller.name) == (CallerKind.PERSON, "ann@example.com")
    assert caller.roles == {"responder"}
    assert caller.person(TeamId("T1")).team == API


@pytest.mark.parametrize("claim", ["groups", "email", "slack"])
@pytest.mark.parametrize("odd", [None, 2**127, {"a": 1}, ["\ud800", [[]]], "\ud800<@U1>", True])
def test_an_odd_claim_grants_nothing(claim: str, odd: JsonValue) -> None:
    caller = RULES.caller({**CLAIMS, claim: odd})

    assert caller.account == ""
    assert caller.roles <= {"responder"}
    assert "<" not in caller.name
    assert caller.name
    caller.name.encode()


def test_another_issuers_person_is_another_person() -> None:
    other = RULES.caller({**CLAIMS, "iss": "https://other"})

    assert other.user != RULES.caller(CLAIMS).user
    assert RULES.caller({**CLAIMS, "email": "new"}).user == RULES.caller(CLAIMS).user


def test_a_claim_may_name_the_slack_account_whose_roles_apply() -> None:
    person = RULES.caller({**CLAIMS, "slack": "U0123"}).person(TeamId("T1"))

    assert (person.team, person.user) == (TeamId("T1"), UserId("U0123"))


def test_the_configured_token_is_a_service() -> None:
    assert OPERATOR.kind is CallerKind.SERVICE


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        (["Bearer a"], "a"),
        (["bearer  a "], "a"),
        (["Basic a"], ""),
        (["a"], ""),
        ([], ""),
        (["Bearer a", "Bearer b"], ""),
    ],
)
def test_one_bearer_token_is_accepted(headers: list[str], token: str) -> None:
    assert token_of(headers) == token


def test_a_caller_over_the_rate_limit_waits_and_other_callers_do_not() -> None:
    now = 0.0
    rate = Rate(2, lambda: now)
    rate.take("a")
    rate.take("a")
    with pytest.raises(Denied) as denied:
        rate.take("a")
    assert (denied.value.status, denied.value.retry_after_s) == (429, 60)
    rate.take("b")

    now = 60.0
    rate.take("a")
    now = -1e9  # a clock that was set back
    rate.take("a")
