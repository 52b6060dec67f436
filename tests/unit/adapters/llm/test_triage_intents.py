"""What people type in a thread: each message is read as what it asks for, and answered with that alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import Message, Role
from adapters.llm.on_call import on_call_in, on_call_note
from adapters.llm.triage.intents import intents
from adapters.llm.triage.question import understand
from adapters.llm.triage.spelling import spelled_out
from tests.fixtures_triage import NOW, TOOLS, Investigation, deploy, investigate, moved, world

PRODUCTS = ("checkout", "cart", "payments", "payments-db")
SLOW = moved("checkout", "latency", "2026-04-07T14:10:00Z")
DEPLOYED = deploy("checkout", "2026-04-07T14:09:00Z")
FIRST = ("why is checkout slow?",)
READS = (*TOOLS, "core__find_metrics", "core__get_metrics")


async def later(question: str, *, told: str = "", **around: Any) -> Investigation:
    return await investigate(
        world([SLOW], [DEPLOYED], around=around),
        question,
        products=PRODUCTS,
        tools=READS,
        before=FIRST,
        told=told,
    )


@pytest.mark.parametrize(
    ("text", "topic", "part"),
    [
        ("is it over?", "cause", "over"),
        ("still broken?", "cause", "over"),
        ("is checkout still slow", "cause", "over"),
        ("what did the rollback do", "cause", "over"),
        ("how slow is cart now", "figure", "all"),
        ("has v2.4.0 been rolled back", "done", "all"),
        ("any open cards", "done", "all"),
        ("anything else broken", "cause", "impact"),
        ("could we just restart it", "cause", "next"),
        ("why not restart instead", "cause", "next"),
        ("who can approve this", "cause", "next"),
        ("cool, closing this", "thanks", "all"),
        ("can we close this", "cause", "over"),
        ("is everything back to normal?", "cause", "over"),
        ("did the rollback help", "cause", "over"),
        ("show me the error logs", "logs", "all"),
        ("any errros in payments logs", "logs", "all"),
        ("tail checkout", "logs", "all"),
        ("how much memory does cart use?", "figure", "all"),
        ("whats the error rate of checkout", "figure", "all"),
        ("p99 now?", "figure", "all"),
        ("wat changed", "deploys", "all"),
        ("who deployed v2.4.0?", "deploys", "all"),
        ("wich version is runing", "deploys", "all"),
        ("who confirmed?", "done", "all"),
        ("has it been rolled back?", "done", "all"),
        ("whos oncall rn", "on call", "all"),
        ("restart checkout", "order", "all"),
        ("can you please scale cart to 4", "order", "all"),
        ("which pods are crashing", "pods", "all"),
        ("has this happened before?", "history", "all"),
        ("is there a runbook", "runbook", "all"),
        ("who is affected", "cause", "impact"),
        ("how many customers are affected?", "cause", "impact"),
        ("what should i do", "cause", "next"),
        ("are you sure?", "cause", "coverage"),
        ("when did it start", "cause", "onset"),
        ("so what was the cause", "cause", "all"),
        ("why?", "cause", "all"),
        ("ok thanks", "thanks", "all"),
        ("what can you do?", "help", "all"),
        ("tldr", "recap", "all"),
        ("page the db team", "beyond", "all"),
        ("what do i do", "cause", "next"),
        ("why are you so sure", "cause", "coverage"),
        ("did it begin before or after the deploy", "cause", "onset"),
        ("how long were we down", "cause", "onset"),
        ("is it still going", "cause", "over"),
        ("close it?", "cause", "over"),
        ("worse than usual?", "cause", "over"),
        ("any users complaining", "cause", "impact"),
        ("are we losing orders?", "cause", "impact"),
        ("summarize this for the status page", "recap", "all"),
        ("so what was it", "recap", "all"),
        ("approve it", "done", "all"),
        ("ok do it", "done", "all"),
        ("kill the nightly job", "order", "all"),
        ("when did v2.4.0 go out", "deploys", "all"),
        ("what did v2.4.0 change", "deploys", "all"),
        ("was there a release before it", "deploys", "all"),
        ("last 5 errors", "logs", "all"),
        ("does cart keep crashing", "pods", "all"),
        ("traffic drop?", "figure", "all"),
        ("connections used?", "figure", "all"),
        ("cart 5xx?", "figure", "all"),
        ("latency after the rollback", "figure", "all"),
        ("errors containing timeout", "logs", "all"),
        ("all services up?", "cause", "over"),
        ("thanks, closing", "thanks", "all"),
        ("thx going to bed", "thanks", "all"),
        ("what did we do last time", "history", "all"),
        ("you sure? people say its slow", "cause", "coverage"),
        ("how many payments failed", "figure", "all"),
        ("cpu per pod", "figure", "all"),
        ("disk full?", "figure", "all"),
        ("whats holding the connections", "beyond", "all"),
        ("show me the events", "pods", "all"),
        ("describe it", "pods", "all"),
        ("exit code?", "pods", "all"),
        ("image tag wrong?", "pods", "all"),
        ("is the quota full", "pods", "all"),
        ("are the endpoints there", "pods", "all"),
        ("restart loop?", "pods", "all"),
        ("show the stack trace", "logs", "all"),
        ("better now?", "cause", "over"),
        ("it's getting worse!!", "cause", "over"),
        ("list the affected services", "cause", "impact"),
        ("so no deploy?", "deploys", "all"),
        ("can we fail over", "order", "all"),
        ("are all pods ok", "pods", "all"),
        ("which secret", "pods", "all"),
        ("dont restart anything, whats safe", "cause", "next"),
        ("whats the error budget left", "beyond", "all"),
        ("which service", "recap", "all"),
        ("when did this last happen", "history", "all"),
        ("hello?", "greeting", "all"),
        ("is there a card that i must click", "done", "all"),
        ("who said no to the rollback", "done", "all"),
        ("which customers", "cause", "impact"),
        ("what metric is the worst one", "cause", "impact"),
        ("where is the bottleneck", "cause", "all"),
        ("and if that doesnt help?", "cause", "next"),
        ("whats the fix", "cause", "next"),
        ("when did latency go up", "cause", "onset"),
        ("how many minutes were we degraded", "cause", "onset"),
        ("did traffic go up", "figure", "all"),
        ("hw much mem does cart eat", "figure", "all"),
        ("http_requests_total", "figure", "all"),
        ("is v2.4.0 on any host", "deploys", "all"),
        ("all quiet?", "cause", "over"),
        ("did the rollback actually do anything", "cause", "over"),
        ("same problem as last month?", "history", "all"),
        ("roll forward now", "order", "all"),
        ("open a jira pls", "beyond", "all"),
        ("fixed?", "cause", "over"),
        ("hows it lookin", "cause", "over"),
        ("is prod ok", "cause", "over"),
        ("is the problem getting worse", "cause", "over"),
        ("ok cool, anything still open?", "cause", "over"),
        ("so do i roll back or not", "cause", "next"),
        ("which service has the highest error rate", "cause", "impact"),
        ("did somebody change cart today", "deploys", "all"),
        ("cart and shipping latency pls", "figure", "all"),
        ("can this happen again", "beyond", "all"),
        ("how long will the fix take", "beyond", "all"),
        ("is anyone working on this", "beyond", "all"),
        ("so its fixed?", "cause", "over"),
        ("looks better now", "cause", "over"),
        ("what runbook should i follow", "runbook", "all"),
        ("how many 500s in the last 5 min", "figure", "all"),
        ("was there a config change", "deploys", "all"),
        ("nope dont roll back", "done", "all"),
        ("ok im here, whats up", "recap", "all"),
        ("can we trust this", "cause", "coverage"),
        ("should we tell customers", "cause", "impact"),
        ("yes", "done", "all"),
        ("logs around 15:10", "logs", "all"),
        ("good job bot", "thanks", "all"),
        ("would a restart help", "cause", "next"),
        ("https://jira.test/OPS-1 is this related", "beyond", "all"),
        ("hi, joining now", "recap", "all"),
        ("can someone sum this up", "recap", "all"),
        ("what broke first", "cause", "onset"),
        ("better or worse than 10 min ago", "cause", "over"),
        ("sure about that?", "cause", "coverage"),
        ("sup", "greeting", "all"),
        ("nothing else changed?", "deploys", "all"),
        ("did the restart go through", "done", "all"),
        ("who pushed the button", "done", "all"),
        ("lmk when its over", "beyond", "all"),
        ("any alerts firing", "beyond", "all"),
        ("do the errors come from one host", "beyond", "all"),
        ("any restarts today", "pods", "all"),
        ("top 3 errors", "logs", "all"),
        ("how slow exactly", "figure", "all"),
        ("what was the first symptom", "cause", "onset"),
        ("what did jonas change", "deploys", "all"),
        ("list everything that changed since noon", "deploys", "all"),
        ("nvm found it", "thanks", "all"),
        ("Connection refused: dial tcp 10.0.3.7:5432", "logs", "all"),
        ("u there?", "greeting", "all"),
        ("thx man, nice one", "thanks", "all"),
        ("\U0001f44d\U0001f3fd", "thanks", "all"),
        (":+1:", "thanks", "all"),
        ("tell me in one line", "recap", "all"),
        ("write a status update for the ceo", "recap", "all"),
        ("whats the slowest service", "cause", "impact"),
        ("so rollback or wait?", "cause", "next"),
        ("what didnt you look at", "cause", "coverage"),
        ("is this a false alarm", "cause", "over"),
        ("should i wake up the dba", "on call", "all"),
        ("was it slow last week too", "figure", "all"),
        ("how do i silence the alert", "beyond", "all"),
        ("https://grafana.test/d/abc?from=now-1h", "beyond", "all"),
        ("[FIRING:1] HighLatency cart p99 > 1s severity=page", "cause", "state"),
        ("ERROR 2026-04-07T14:15:02Z cart POST /v1/orders 500: no quotes", "logs", "all"),
        (
            "java.lang.NullPointerException: no quote\n\tat com.shop.Cart(Cart.java:12)",
            "logs",
            "all",
        ),
    ],
)
def test_a_later_message_is_read_by_its_intent(text: str, topic: str, part: str) -> None:
    (found,) = intents(text, PRODUCTS, later=True)

    assert (found.topic, found.part) == (topic, part)


@pytest.mark.parametrize("name", ["web-dashboard", "chart-service"])
def test_a_word_within_a_product_s_name_is_not_an_intent(name: str) -> None:
    found = intents(
        f"our shop ({name}) answers badly, which component causes it?", (name,), later=False
    )

    assert "figure" not in {one.topic for one in found}


def test_two_questions_in_one_message_are_both_answered() -> None:
    found = intents("is it over and who confirmed?", PRODUCTS, later=True)

    assert [(one.topic, one.part) for one in found] == [("cause", "over"), ("done", "all")]


def test_the_deployer_is_named_beside_the_cause_in_a_thread_only() -> None:
    text = "ok so whats the root cause and who deployed it"

    assert [one.topic for one in intents(text, PRODUCTS, later=True)] == ["cause", "deploys"]
    assert [one.topic for one in intents(text, PRODUCTS, later=False)] == ["cause"]


@pytest.mark.parametrize(
    "text", ["write a haiku about errors budgets", "explain kubernetes to my boss", "what is love"]
)
async def test_a_question_that_needs_a_model_gets_one_sentence_and_three_suggestions(
    text: str,
) -> None:
    found = await later(text.replace("kubernetes", "this"))

    assert found.calls == []
    assert found.text.startswith("**I cannot answer this without a model")
    assert found.text.count('"') == 6


@pytest.mark.parametrize("text", ["\U0001f525\U0001f525", "..."])
async def test_a_message_without_words_starts_no_investigation(text: str) -> None:
    found = await later(text)

    assert found.calls == []
    assert found.text.startswith("I did not understand")


async def test_another_language_is_declined_as_one() -> None:
    assert "I read only English." in (await later("ist es vorbei?")).text


async def test_whether_it_gets_worse_is_answered_with_the_worst_figure() -> None:
    found = await investigate(
        world([{**SLOW, "worst": 4.5}]), "is it getting worse?", products=PRODUCTS, before=FIRST
    )

    assert " At its worst it was " in found.text or "worst so far" in found.text
    assert found.marks == ()


async def test_what_was_not_checked_comes_first_where_that_is_asked() -> None:
    found = await later("what didnt you look at")

    assert found.text.startswith("**I could not check: ")
    assert "I checked metrics" in found.text
    assert found.marks == ()


async def test_how_it_was_an_hour_ago_is_answered_with_that_time_alone() -> None:
    found = await later("an hour ago was it fine?")

    assert found.text.startswith("At the time you mention, ")
    assert found.asked("core__propose_action") == []


async def test_a_change_of_the_database_is_looked_for_in_its_own_deploys() -> None:
    found = await later("did anyone touch the db")

    assert found.text.startswith("**No deploy of payments-db in the last seven days.** [E")


async def test_a_thread_that_a_statement_opened_stays_with_its_product() -> None:
    found = await investigate(
        world([SLOW], [DEPLOYED]), "is it over", products=PRODUCTS, before=("checkout is slow",)
    )

    assert "Assumed: you mean checkout, as before." in found.text


async def test_is_it_over_is_denied_with_the_current_figure() -> None:
    found = await later("is it over?")

    assert found.text.startswith(
        "**Not over: latency of checkout is still 1.8 s (normally 0.2 s).** [E"
    )
    assert "Most likely cause" not in found.text
    assert found.asked("core__propose_action") == []
    assert found.marks == ()


@pytest.mark.parametrize("question", ["is it over?", "is it still slow?", "still broken?"])
async def test_over_and_not_over_are_stated_and_never_as_yes(question: str) -> None:
    ill = await later(question)
    well = await investigate(world(), question, products=PRODUCTS, before=FIRST)

    assert ill.text.startswith("**Not over: ")
    assert well.text.startswith("**It is over, as far as I can see.")


@pytest.mark.parametrize(
    "question", ["is payments down", "payment service ok?", "support asks if payments are fine"]
)
async def test_a_yes_or_no_question_about_another_product_is_its_state(question: str) -> None:
    found = await later(question)

    assert found.text.startswith("**payments: its errors, latency, traffic are as usual")
    assert found.asked("core__propose_action") == []


async def test_after_a_why_about_another_product_the_thread_goes_on_with_what_it_found() -> None:
    found = await investigate(
        world([SLOW], [DEPLOYED]),
        "is it over?",
        products=PRODUCTS,
        earlier=[
            Message(Role.USER, text="why is checkout slow?"),
            Message(Role.USER, text="why is cart slow?"),
            Message(
                Role.ASSISTANT, text="**Elsewhere, most likely cause: the deploy of checkout v2.**"
            ),
        ],
    )

    assert found.text.startswith("**Not over: latency of checkout")


async def test_its_back_is_about_the_incident_and_not_the_product_asked_about_beside_it() -> None:
    found = await investigate(
        world([SLOW], [DEPLOYED]),
        "its back",
        products=PRODUCTS,
        earlier=[
            Message(Role.USER, text="why is checkout slow?"),
            Message(Role.ASSISTANT, text="**Most likely cause: the deploy of checkout v2.**"),
            Message(Role.USER, text="what about cart?"),
        ],
    )

    assert "Assumed: you mean checkout, as before." in found.text


async def test_a_product_that_was_not_checked_is_named_where_that_is_asked() -> None:
    assert '"billing" is not one of' in (await later("did you check billing")).text


@pytest.mark.parametrize("question", ["how is foobar-svc doing", "and billing-v3?", "foo-api ok?"])
async def test_an_unknown_name_is_said_to_be_unknown(question: str) -> None:
    found = await later(question)

    assert "is not one of this channel's products" in found.text
    assert found.calls == []


@pytest.mark.parametrize(
    "question",
    [
        "could the proxy be it?",
        "not the proxy, right?",
        "is it the proxy's fault",
        "is proxy to blame",
    ],
)
async def test_a_guess_without_data_is_said_to_be_one(question: str) -> None:
    assert (await later(question)).text.startswith('I cannot check "proxy"')


@pytest.mark.parametrize(
    "text", ["did cart get slower after the release", "customers are complaining about cart"]
)
def test_trouble_with_another_product_asks_for_its_state(text: str) -> None:
    asked = understand(text, PRODUCTS, NOW, later=True)

    assert (asked.subject, asked.topic, asked.part) == ("cart", "cause", "state")


def test_an_english_word_is_no_misspelt_product() -> None:
    assert understand("draw me a chart", PRODUCTS, NOW, later=True).subject == ""


@pytest.mark.parametrize(
    ("question", "topic", "part"),
    [
        ("is it over?", "cause", "over"),
        ("error rate payments last 15m", "figure", "all"),
        ("payments p99 since 14:00", "figure", "all"),
        ("latency spike on payments", "cause", "all"),
        ("error rate of payments is too high", "cause", "all"),
        ("payments p99 alert since 14:00", "cause", "all"),
        ("is payments down", "cause", "all"),
    ],
)
def test_a_first_message_may_ask_for_one_figure(question: str, topic: str, part: str) -> None:
    asked = understand(question, PRODUCTS, NOW)

    assert (asked.topic, asked.part) == (topic, part)


@pytest.mark.parametrize("text", ["ok lets roll it back", "yes, go ahead and roll it back"])
def test_an_agreement_to_a_rollback_asks_for_its_card(text: str) -> None:
    assert understand(text, PRODUCTS, NOW, later=True).wants_undone


def test_a_named_hour_of_another_day_is_not_compared_with_now() -> None:
    asked = understand("was cart slow yesterday at 10:00", PRODUCTS, NOW, later=True)

    assert asked.at is not None


@pytest.mark.parametrize(
    "question",
    ["isnt it the database?", "any chance its the database?", "what if it's payments-db"],
)
async def test_a_guess_is_answered_as_a_guess(question: str) -> None:
    assert "I see no sign that it is" in (await later(question)).text


async def test_what_about_another_product_shows_its_state_and_keeps_the_thread() -> None:
    found = await later("what about payments?")

    assert found.text.startswith("**payments: its errors, latency, traffic are as usual [E")
    assert "the deploy of checkout v2" in found.text
    assert found.asked("core__propose_action") == []


async def test_a_mention_of_another_product_does_not_change_the_incident() -> None:
    found = await investigate(
        world([SLOW], [DEPLOYED]), "is it over?", before=(*FIRST, "what about cart?")
    )

    assert found.text.startswith("**Not over: latency of checkout")


LINES = {
    "range": "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z",
    "lines": [
        {"ts": f"2026-04-07T14:3{n}:00Z", "level": "error", "message": f"POST /v1/orders 50{n}"}
        for n in range(5, -1, -1)
    ],
    "total_matches": 6,
}


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("show me the error logs", {"product": "checkout", "level": "error"}),
        ("logs of cart with timeout", {"product": "cart", "query": "timeout"}),
        ("errors from /v1/orders in the logs", {"level": "error", "query": "/v1/orders"}),
        ('logs with "out of memory"', {"query": "out of memory"}),
        ("show me warnings", {"level": "warn"}),
        ("logs of cart with 'no quotes'", {"product": "cart", "query": "no quotes"}),
        ("don't show errors, show the team's logs", {"product": "checkout"}),
        ("ERROR 14:02 cart: request 4f1 failed: no quotes left: id=7", {"query": "no quotes left"}),
        (
            '{"level": "error", "msg": "no quotes left"}',
            {"level": "error", "query": "no quotes left"},
        ),
    ],
)
async def test_log_lines_are_filtered_by_the_questions_words(
    question: str, wanted: dict[str, str]
) -> None:
    found = await later(question, get_logs=LINES)

    (arguments,) = found.asked("core__get_logs")
    assert wanted.items() <= arguments.items()


async def test_log_lines_are_shown_verbatim_and_five_at_most() -> None:
    found = await later("show me the error logs", get_logs=LINES)

    assert "14:35:00 error POST /v1/orders 505" in found.text
    assert found.text.count("POST /v1/orders") == 5
    assert found.marks == ()


async def test_no_matching_line_is_reported_with_filter_and_time() -> None:
    found = await later("logs with timeout", get_logs={**LINES, "lines": []})

    assert found.text.startswith("**checkout wrote no lines with `timeout` since 14:05 UTC.**")


@pytest.mark.parametrize("line", ["``` @here", "a\u2028b", "x" * 5_000, "*bold* <http://e.test|l>"])
async def test_a_hostile_line_stays_one_line_of_its_block(line: str) -> None:
    rows = [{"ts": "2026-04-07T14:30:00Z", "level": "error", "message": line}]
    found = await later("show me the error logs", get_logs={**LINES, "lines": rows})

    block = found.text.split("```")
    assert len(block) == 3
    assert len(block[1].strip("\n").split("\n")) == 1


async def test_a_long_line_is_cut_at_a_word() -> None:
    row = {"ts": "2026-04-07T14:30:00Z", "level": "error", "message": f"{'word ' * 59}id=4fe0a1b2"}
    found = await later("show me the error logs", get_logs={**LINES, "lines": [row]})

    assert "word …" in found.text
    assert "id=4f" not in found.text
    assert found.marks == ()


@pytest.mark.parametrize("question", ["and the db?", "what about the databases", "is the db slow"])
async def test_a_part_of_the_system_means_its_products(question: str) -> None:
    assert "payments-db" in (await later(question)).text.partition("\n")[0]


async def test_whether_a_product_is_affected_is_not_a_new_investigation() -> None:
    found = await later("is cart down because of this?")

    assert found.text.startswith("**cart: its errors, latency, traffic are as usual")


async def test_a_figure_is_read_from_the_metric_that_the_product_has() -> None:
    memory = {
        "unit": "bytes",
        "stats": {"min": 4.8e8, "max": 5.3e8},
        "samples": [{"ts": "2026-04-07T14:34:00Z", "value": 5.12e8}],
    }
    found = await later(
        "how much memory does cart use?",
        find_metrics={"found": [{"name": "process_resident_memory_bytes", "role": "memory"}]},
        get_metrics=memory,
    )

    (read,) = found.asked("core__get_metrics")
    assert (read["product"], read["metric_name"]) == ("cart", "process_resident_memory_bytes")
    assert found.text.startswith("**cart:** memory is 512 MB; between 480 MB and 530 MB [E2].")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("availability", "`availability` is 100 %"),
        ("http_request_error_ratio", "error rate is 100 %"),
    ],
)
async def test_a_share_is_called_error_rate_only_where_it_counts_failures(
    name: str, words: str
) -> None:
    samples = [{"ts": "2026-04-07T14:34:00Z", "value": 1.0}]
    found = await later(
        "error rate of cart",
        find_metrics={"found": [{"name": name, "role": "errors"}]},
        get_metrics={"unit": "ratio", "stats": {"min": 1.0, "max": 1.0}, "samples": samples},
    )

    assert words in found.text


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ({"find_metrics": {"found": []}}, "memory: no such metric was found [E1]"),
        ({"find_metrics": LookupError("down")}, "memory: the metrics could not be read [E1]"),
        (
            {"find_metrics": {"found": [{"name": "m"}, None]}, "get_metrics": {"samples": []}},
            "memory: no samples in that time [E2]",
        ),
        (
            {"find_metrics": {"found": [{"name": "m"}]}, "get_metrics": LookupError("slow")},
            "memory: its metric could not be read [E2]",
        ),
    ],
)
async def test_an_unavailable_figure_is_reported_and_never_invented(
    around: dict[str, Any], words: str
) -> None:
    assert words in (await later("memory of cart", **around)).text


@pytest.mark.parametrize(
    ("question", "action", "product"),
    [
        ("restart checkout", "restart", "checkout"),
        ("pls reboot cart", "restart", "cart"),
        ("propose rollback-deploy payments", "rollback-deploy", "payments"),
    ],
)
async def test_an_order_becomes_a_card_of_a_declared_action(
    question: str, action: str, product: str
) -> None:
    found = await ordered(question)

    (proposed,) = found.asked("core__propose_action")
    assert (proposed["action"], proposed["product"]) == (action, product)
    assert "did not check whether it helps" in proposed["rationale"]
    assert found.text.startswith(f"**The card for {action} of {product} is below.**")
    assert "Nothing runs until" in found.text


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("scale checkout to 10", 'no action "scale" is declared'),
        ("delete cart", 'no action "delete" is declared'),
    ],
)
async def test_an_undeclared_action_proposes_nothing(question: str, words: str) -> None:
    found = await ordered(question)

    assert found.calls == []
    assert words in found.text
    assert "restart" in found.text


@pytest.mark.parametrize(
    "question",
    [
        "restart loop on payments",
        "deploy of checkout looks bad",
        "release was fine",
        "stop",
        "the restart of checkout failed",
        "do not restart checkout",
        "should we restart checkout?",
    ],
)
async def test_a_mention_of_an_action_is_not_an_order(question: str) -> None:
    proposed = (await ordered(question)).asked("core__propose_action")

    assert [one["action"] for one in proposed if one["action"] != "rollback-deploy"] == []


async def test_after_a_rejection_a_new_card_is_one_message_away() -> None:
    told = (
        "Now\n- Proposal p-7 (rollback-deploy checkout {}): rejected by U7 at 2026-04-07T14:20:00Z, "
        "nothing was run. Do not propose it again unless something was deployed since."
    )
    why = await ordered("why is checkout slow?", told=told)
    again = await ordered("propose it again", told=told)

    assert "Write `propose rollback-deploy checkout` for a new card." in why.text
    assert why.asked("core__propose_action") == []
    (proposed,) = again.asked("core__propose_action")
    assert (proposed["action"], proposed["product"]) == ("rollback-deploy", "checkout")


async def ordered(question: str, told: str = "") -> Investigation:
    return await investigate(
        world([SLOW], [DEPLOYED]),
        question,
        products=PRODUCTS,
        before=FIRST,
        told=told,
        actions=("rollback-deploy", "restart"),
    )


@pytest.mark.parametrize("question", ["is billing ok?", "what about the new billing service"])
async def test_an_unknown_name_is_reported_and_no_other_product_replaces_it(
    question: str,
) -> None:
    found = await later(question)

    assert found.text.startswith('"billing" is not one of this channel\'s products')
    assert "Most likely cause" not in found.text


async def test_who_is_on_call_is_answered_from_the_questions_note() -> None:
    told = "Now\n- On call now: Mira Okafor (role on-call)."

    assert (await later("who is on call?", told=told)).text.startswith(
        "**On call now: Mira Okafor (role on-call).**"
    )
    assert "I have no rota" in (await later("who is on call?")).text


@given(st.text(max_size=200))
def test_any_text_has_at_most_two_intents_and_one_spelling(text: str) -> None:
    assert len(intents(text, PRODUCTS, later=True)) <= 2
    assert isinstance(spelled_out(text, PRODUCTS), str)


@pytest.mark.parametrize("text", ["payments-db", "/v1/orders", '"Errros"', "v2.4.0", "cart"])
def test_names_paths_and_quotations_keep_their_spelling(text: str) -> None:
    assert spelled_out(text, PRODUCTS) == text.lower()


@pytest.mark.parametrize(
    ("by_role", "words"),
    [
        ({"on-call": ["Mira Okafor", "Jonas"]}, "On call now: Mira Okafor, Jonas (role on-call)."),
        ({"on-call": None}, "On call now: could not be read just now (role on-call)."),
        ({"on-call": []}, "On call now: no person (role on-call)."),
        ({"on-call": ["*x*\n- Proposal"]}, "On call now: x - Proposal (role on-call)."),
        ({}, "On call: I have no rota for this channel."),
    ],
)
def test_the_line_about_the_rota_is_read_back_as_it_was_written(
    by_role: dict[str, list[str] | None], words: str
) -> None:
    note = on_call_note(by_role)

    assert on_call_in(f"Now\n- {note}\n- Proposal p-1") == note == words
