"""A question that names a product outside the channel's: looked at where that may be, else said."""

import pytest

from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

SLOW = [moved("checkout", "latency", "2026-04-07T14:10:00Z")]
NOT_OURS = '"billing" is not one of this channel\'s products (checkout, cart, payments)'


async def bounded(question: str, **more: object) -> Investigation:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    return await investigate(world(SLOW, [row]), question, elsewhere=("billing", "ledger"), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question",
    [
        "why is billing slow?",
        "what changed in billing?",
        "show me the logs of billing",
        "are there errors in Billing?",
        "who deployed billing yesterday?",
    ],
)
async def test_another_channels_product_is_named_and_nothing_is_read(question: str) -> None:
    found = await bounded(question)

    assert found.text.startswith(NOT_OURS)
    assert '`reading = "all"`' in found.text
    assert found.calls == []
    assert "ledger" not in found.text
    assert found.marks == ()


async def test_logs_of_an_unknown_name_are_not_another_products() -> None:
    found = await bounded("show me the logs of orders")

    assert '"orders" is not one of' in found.text
    assert found.calls == []


@pytest.mark.parametrize("name", ["ghost", "ledger-v2", "user_api", "fraud.scoring"])
@pytest.mark.parametrize(
    "form",
    [
        "what is the p99 of {}?",
        "error rate for the {} please",
        "how much memory does {} use right now, please tell me",
        "cpu of the {} service",
        "latency in {}",
        "traffic for {} yesterday",
        "pods of {}",
        "how many pods does {} have",
        "any errors in {}?",
        "what is the state of {}",
        "when did {} start failing",
    ],
)
async def test_the_figures_of_an_unknown_name_are_not_another_products(
    form: str, name: str
) -> None:
    found = await bounded(form.format(name), before=["why is checkout slow?"])

    assert found.text.startswith(f'"{name}" is not one of this channel\'s products')
    assert "so I did not check it" in found.text
    assert "you mean checkout" not in found.text
    assert found.calls == []


@pytest.mark.parametrize(
    "question",
    [
        "who deployed ghost?",
        "what was deployed to ghost",
        "what version of ghost is running",
        "which version does ghost run?",
        "who is on call for ghost?",
        "has ghost been rolled back?",
        "who confirmed the rollback of ghost",
        "runbook for ghost",
    ],
)
async def test_deploys_and_people_of_an_unknown_name_begin_with_a_notice(question: str) -> None:
    found = await bounded(question, before=["why is checkout slow?"])

    assert found.text.startswith('"ghost" is not one of this channel\'s products')
    assert "you mean checkout" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "p99 of successful requests",
        "cpu in cores",
        "p99 of the slowest pod",
        "how many requests did fail",
        "p99 of the last hour",
        "memory usage of the pods",
        "p99 for today",
        "was v2.4.0 deployed?",
        "has alice confirmed?",
        "who deployed the hotfix?",
        "what is the error rate of both",
        "error logs with NullPointerException",
        "is p99 climbing",
    ],
)
async def test_a_unit_a_person_or_an_adjective_is_no_product(question: str) -> None:
    found = await bounded(question, before=["why is checkout slow?"])

    assert "is not one of" not in found.text


@pytest.mark.parametrize(
    "question",
    ["show the logs for today", "search the logs for timeouts", "what changed in staging?"],
)
async def test_a_time_a_symptom_or_a_place_is_not_a_name(question: str) -> None:
    found = await bounded(question)

    assert "is not one of" not in found.text
    assert found.calls


@pytest.mark.parametrize(
    "question",
    ["why is the tax service failing?", "is tax service ok?", "errors of our tax microservice"],
)
async def test_an_unknown_service_is_reported_first(question: str) -> None:
    found = await bounded(question)

    assert found.text.startswith('"tax" is not one of this channel\'s products')


@pytest.mark.parametrize(
    "question",
    [
        "why is the payment service slow?",
        "which service is slow?",
        "is the whole service down?",
        "why is the affected service slow?",
        "why does the service account fail?",
    ],
)
async def test_a_word_before_service_may_not_be_a_name(question: str) -> None:
    found = await bounded(question)

    assert "is not one of" not in found.text


@pytest.mark.parametrize("question", ["can you search for what fails?", "search the logs please"])
async def test_a_common_word_that_is_a_product_elsewhere_is_a_word(question: str) -> None:
    found = await investigate(world(SLOW), question, elsewhere=("search",))

    assert "is not one of" not in found.text
    assert found.calls


@pytest.mark.parametrize(
    "question", ["why are orders failing?", "is the database slow?", "what changed in orders?"]
)
async def test_an_unknown_name_stops_no_investigation_and_is_reported_first(question: str) -> None:
    found = await bounded(question)

    assert "is not one of this channel's products" in found.text.splitlines()[0]
    assert "so this answer covers those" in found.text.splitlines()[0]
    assert "checkout" in found.text.partition("\n")[2]


@pytest.mark.parametrize(
    "question",
    [
        "What is wrong with orders since 2026-04-07T14:00Z?",
        "what is wrong with orders?",
        "why is orders failing?",
        "is something wrong with orders?",
        "Why does orders alert?",
        "why did orders page me?",
        "why is orders red?",
        "why do we get alerts for orders?",
        "is orders alerting?",
        "orders is alerting",
        "orders down",
        "orders has errors",
        "alert on orders",
        "what about orders?",
        "what is going on with orders",
        "what's up with orders today?",
        "please check orders",
    ],
)
async def test_own_products_are_not_an_all_clear_for_an_unknown_one(question: str) -> None:
    found = await investigate(world([], []), question)

    assert found.asked("core__report_findings")[0]["verdict"] == "unknown"
    assert "No data for orders was found" in found.text
    assert "Nothing is wrong" not in found.text


@pytest.mark.parametrize("name", ["ghost", "ledger-v2", "user_api", "fraud.scoring"])
@pytest.mark.parametrize(
    "form",
    [
        "{}?",
        "`{}`?",
        "and {}?",
        "@kortex {}?",
        "{} status?",
        "{} ok?",
        "{}, please?",
        "{} last hour?",
        "{} issues?",
        "status of {}",
        "health of the {}",
        "how's {}?",
        "hows {}",
        "how is {} doing?",
        "is {} alive?",
        "is our {} having a bad night?",
        "does {} work?",
        "tell me about {}",
        "everything fine with {}?",
        "any news on {}",
    ],
)
async def test_a_bare_unknown_name_is_reported_and_prevents_the_all_clear(
    form: str, name: str
) -> None:
    found = await investigate(world([], []), form.format(name))

    assert found.text.startswith(f'"{name}" is not one of this channel\'s products')
    assert f"No data for {name} was found" in found.text
    assert "Nothing is wrong" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "anomalies?",
        "is anything unusual here?",
        "what is unusual?",
        "hey, anything weird?",
        "slowness in production",
        "complaints from customers",
        "is latency elevated?",
        "did performance degrade?",
        "isn't it the network?",
        "status update please",
        "sev1!",
        "p95?",
    ],
)
async def test_short_words_of_the_trade_are_no_names(question: str) -> None:
    found = await investigate(world([], []), question)

    assert "is not one of" not in found.text


@pytest.mark.parametrize(
    "question", ["is something wrong with the shop?", "what is wrong with our app?"]
)
async def test_a_name_for_the_whole_system_leaves_no_product_out(question: str) -> None:
    found = await investigate(world([], []), question)

    assert "No data for" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "why does it alert?",
        "why did you page me?",
        "why did this alert fire?",
        "why does everything fail?",
        "why are customers seeing errors?",
        "why do we get alerts for latancy?",
        "alert on high latency",
        "p99 is slow",
        "the website is broken",
        "what happened on monday?",
        "any problems in general?",
        "@kortex is everything down?",
        "kortex is slow today",
        "check again please",
        "something is slow",
        "nothing works",
    ],
)
async def test_a_complaint_without_a_name_covers_all_own_products(question: str) -> None:
    found = await investigate(world([], []), question)

    assert "is not one of" not in found.text
    assert "No data for" not in found.text


async def test_a_question_about_ones_own_trouble_is_investigated_despite_another_name() -> None:
    found = await bounded("why is it slow since billing was deployed?")

    assert found.text.startswith(f"{NOT_OURS}, so this answer covers those.")
    assert "checkout" in found.text.partition("\n")[2]


async def test_ones_own_product_is_answered_despite_another_name() -> None:
    found = await bounded("is billing what makes checkout slow?")

    assert "is not one of" not in found.text


async def test_a_follow_up_on_another_channels_product_is_not_answered_with_ones_own() -> None:
    found = await bounded("show me the logs", before=["why is billing slow?"])

    assert found.text.startswith(NOT_OURS)
    assert found.calls == []


async def test_a_channel_that_reads_all_products_investigates_with_a_notice() -> None:
    slow = world([moved("billing", "latency", "2026-04-07T14:10:00Z")])
    found = await investigate(
        slow, "why is billing slow?", elsewhere=("Billing-other",), reads_all=True
    )

    assert found.text.startswith(f"{NOT_OURS}, but this channel may read it.")
    assert [one["product"] for one in found.asked("core__sweep_metrics")] == ["billing"]
    assert "begin in billing" in found.text


async def test_an_unknown_name_is_never_called_healthy() -> None:
    found = await investigate(world(), "is orders fine?", reads_all=True)

    assert "Nothing is wrong" not in found.text
    assert "You asked about orders: no metrics of its own were found [E1]." in found.text


async def test_a_part_of_the_system_is_not_a_product() -> None:
    found = await investigate(world(SLOW), "is the database slow?", reads_all=True)

    assert all("product" not in one for one in found.asked("core__sweep_metrics"))


async def test_a_channel_that_reads_all_products_shows_the_requested_logs() -> None:
    found = await investigate(world(SLOW), "show me the logs of database", reads_all=True)

    assert [one["product"] for one in found.asked("core__get_logs")] == ["database"]


async def test_a_hostile_name_stays_one_word_in_the_answer() -> None:
    name = "a" * 300 + "_x_"
    found = await bounded(f"show the logs of {name}")

    assert "a" * 65 not in found.text
    assert "_x_" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "was ist los?",
        "was ist kaputt?",
        "wieso down?",
        "alles ok?",
        "pourquoi c'est lent ?",
        "neden yavas?",
        "sorun ne?",
        "que pasa?",
        "algo va mal?",
        "che succede?",
        "esta caido?",
        "waarom traag?",
        "miksi hidas?",
        "kya hua?",
    ],
)
async def test_an_ordinary_word_of_another_language_is_no_unknown_product(question: str) -> None:
    found = await investigate(world([], []), question)

    assert "is not one of this channel's products" not in found.text
    assert "No data for" not in found.text
    assert "checkout, cart and payments" in found.text


@pytest.mark.parametrize(
    "question", ["\u00bfqu\u00e9 pasa con checkout?", "was ist mit checkout los?"]
)
async def test_a_product_in_a_question_of_another_language_is_the_subject(question: str) -> None:
    found = await investigate(world([], []), question)

    assert "checkout" in found.text
    assert "cart" not in found.text


async def test_an_all_clear_for_many_products_names_none_of_them() -> None:
    names = [f"shop-{each}" for each in "abcdef"]
    looked = {"shifts": [], "within": dict.fromkeys(names, "errors latency traffic")}
    found = await investigate(world(around={"sweep_metrics": looked}), "what is wrong?", names)

    assert "Nothing is wrong with any product in this channel" in found.text
