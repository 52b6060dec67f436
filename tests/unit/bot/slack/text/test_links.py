"""No word outside code can be read as a host or an address, with any top-level domain.

The oracle is not the product's: it reads what was sent as the most eager client might, after
entities, look-alike signs, invisible ones and emphasis are gone.
"""

import html
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.slack.text.links import NO_LINKS, LinkPolicy, remark
from bot.slack.text.markdown import hold_back
from tests.fixtures_slack import safe_markdown

GRAFANA = LinkPolicy(frozenset({"grafana.example.com"}))
_CODE = re.compile(r"(?<!\\)`[^`\n]+`")
_IGNORABLE = re.compile("[\u00ad\u034f\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_LINKED = re.compile(
    r"""
      [a-z][a-z0-9+.-]*://
    | (?:mailto|tel|sms|javascript|data|slack|skype|facetime):\S
    | \S@[^\s.]                                  # an address, or @host
    | [^\s.,;:!?'"()]\.(?:[^\W\d_]{2,}|xn--\w)    # a name, a dot, a top-level domain
    | (?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])
    """,
    re.VERBOSE | re.IGNORECASE,
)


def linked(sent: str) -> str | None:
    """What an eager client would make a link of; None when nothing."""
    shown = html.unescape(html.unescape(_CODE.sub(" ", sent)))
    plain = re.sub(r"[*~\\]", "", _IGNORABLE.sub("", unicodedata.normalize("NFKC", shown)))
    found = _LINKED.search(plain.replace("\u3002", "."))
    return found.group() if found else None


TLDS = [
    "com",
    "icu",
    "es",
    "museum",
    "zip",
    "mov",
    "xyz",
    "py",
    "sh",
    "rs",
    "internal",
    "corp",
    "рф",
    "भारत",
    "中国",
    "xn--p1ai",
    "xn--80asehdb",
    "XN--P1AI",
    "Com",
    "LOCAL",
    "cancerresearch",
    "verylongtoplevelname",
]
LABEL = st.from_regex(r"[a-z0-9_](?:[a-z0-9_-]{0,8}[a-z0-9])?", fullmatch=True) | st.sampled_from(
    [
        "secret",
        "xn--e1afmkfd",
        "💩",
        "bücher",
        "例え",
        "ev\u200dil",
        "ｅｖｉｌ",
        "e\u00advil",
        "1",
        "9f",
    ]
)
DOT = st.sampled_from(
    [".", ".", ".", "\u3002", "\uff0e", "\uff61", "\u2024", "&#46;", "&period;", "\\."]
)
BEFORE = st.sampled_from(
    ["", "", "", "leak@", "@", "a.b+c@", "https://", "http:", "//", "slack://", "\uff20", "u:p@", "mailto:",
     "(", "*", "**", "_", '"', "'", ">", "`", "\\", "!", "[", "=", "a=", "#", "|", ",", "…", "“", "-", "~"]
)  # fmt: skip
AFTER = st.sampled_from(
    ["", "", "/SECRET", "?q=SECRET", "#x", ":8080", ":443/x", ".", ",", ")", "*", "**", "]", "](x)", "`",
     "!", "'", "”", ".5", "()", "(x)", "/a(b)", "\\", ">", "|b", ";", "\u200b", "\ufe0f"]
)  # fmt: skip


@st.composite
def hosts(draw: st.DrawFn) -> str:
    """Something like a host or an address, in dress."""
    labels = draw(st.lists(LABEL, min_size=1, max_size=14))
    name = "".join(label + draw(DOT) for label in labels) + draw(st.sampled_from(TLDS))
    return draw(BEFORE) + name + draw(AFTER)


TEXTS = st.lists(hosts() | st.sampled_from(["see", "it", "\n", "- ", "> ", "at"]), max_size=5).map(
    " ".join
)


@given(TEXTS)
def test_no_host_and_no_address_is_left_outside_code(text: str) -> None:
    assert linked(safe_markdown(text, NO_LINKS)) is None


@given(TEXTS, st.integers(0, 300))
def test_no_host_is_left_at_any_moment_of_the_stream(text: str, cut: int) -> None:
    assert linked(safe_markdown(hold_back(text[:cut]), NO_LINKS)) is None


@example("leak@0.ev\u200dil.ｅｖｉｌ.ｅｖｉｌ.com#x slack://0.com", 40)  # cut to `slack:…`
@given(TEXTS, st.integers(40, 300))
def test_no_host_is_left_in_small_print_which_keeps_its_length(text: str, room: int) -> None:
    small = remark(text, room)

    assert linked(small) is None
    assert len(small) <= room
    assert small.count("`") % 2 == 0


@given(TEXTS)
def test_no_host_is_left_next_to_an_allowed_link(text: str) -> None:
    sent = safe_markdown(f"{text} https://grafana.example.com/d/1", GRAFANA)

    assert linked(sent.replace("https://grafana.example.com/d/1", " ")) is None


@pytest.mark.parametrize(
    "text",
    [
        "leak@evil.icu",
        "@evil.com/SECRET",
        "secret.evil.museum",
        ".".join("abcdefghijklmnop") + ".evil.es/x",
        "evil.xn--p1ai",
        "evil\u3002icu",
        "ｅｖｉｌ．ｉｃｕ",
        "ev\u200dil.icu",
        "e**vi**l.icu",
        "evil&#46;icu",
        "1.1.1.1/SECRET",
        "slack.com/app_redirect?channel=C1",
        "skype:evil",
        "ｈｔｔｐ：／／evil",
    ],
)
def test_each_known_disguise_becomes_code_as_a_whole(text: str) -> None:
    assert linked(text) is not None
    assert re.fullmatch(r"`[^`]+`", safe_markdown(text, NO_LINKS))


HONEST = """
The error rate rose from 0.2 % to 14.5 % at 12:04:31 UTC, right after v2.4.0 went out at 12:03.
p99.9 latency is 2.4s (was 310ms); p50 is 0.05s, i.e. about 12.5x worse, e.g. on /cart/items.
checkout-7d9f8b6c5-x2lqp restarted 4 times with OOMKilled (limit 512Mi, request 256Mi).
Deployment payments/checkout in namespace kube-system runs 3/3 replicas on node ip-10-0-3-17.
The pool is exhausted: 40 of 40 connections busy, db_pool_in_use{product="checkout"} = 40.
http_requests_total and rate(http_request_duration_seconds_bucket[5m]) agree.
Roll back to 2.3.1-rc.1 or raise POOL_SIZE to 80; see runbook #12, step 3.
Between 11:58 and 12:04 (UTC+2) nothing else changed, vs. 7 deploys the week before.
- **Cause**: v2.4.0 halved the pool (40 -> 20), *likely* since 12:03
1. Confirm the rollback. 2. Watch the error rate. 3. Close the incident.
| time | errors | p95 |
error: connection refused (dial tcp: lookup failed), code=ECONNREFUSED, status:503
Ask the U.S. team... or wait? No! It's 3 a.m. there, so page on-call & cc @alice.
sha256:9f86d081884c7d65 is image checkout:v2.4.0; apps/v1 and batch/v1 objects only.
CPU is at 95 %, memory at 1.5 GiB/2 GiB, disk at 60 %; 1,234,567 rows; ratio 1:3.
trace 4bf92f3577b34da6a3ce929d0e0e4736 spans 12 services, 2.1 s in checkout -> payments.
Kafka lag is 12k on orders-v2 (partition 7); TLSv1.3, HTTP/2 and gRPC are fine.
Temperature [C] rose, see [1] and (2); a_b_c, x=1, y=2; ~30 users; "quoted" and 'single'.
""".strip().splitlines()


@pytest.mark.parametrize("sentence", HONEST)
def test_an_honest_sentence_is_unchanged(sentence: str) -> None:
    assert html.unescape(safe_markdown(sentence, NO_LINKS)) == sentence
    assert html.unescape(remark(sentence, 300)) == sentence


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("see config.yaml, main.py.", "see `config.yaml`, `main.py`."),
        ("calls pool.acquire() twice", "calls `pool.acquire()` twice"),
        ("(foo.bar())", "(`foo.bar()`)"),
        ("**checkout.latency**: up", "**`checkout.latency`**: up"),
        ("Node.js and Socket.IO", "`Node.js` and `Socket.IO`"),
        ("label app.kubernetes.io/name=checkout", "label `app.kubernetes.io/name=checkout`"),
        ("checkout.shop.svc.cluster.local:8080", "`checkout.shop.svc.cluster.local:8080`"),
        ("java.lang.OutOfMemoryError: heap", "`java.lang.OutOfMemoryError`: heap"),
        ("from 10.0.3.17:5432,", "from `10.0.3.17:5432`,"),
        ("ssh root@checkout-1", "ssh `root@checkout-1`"),
    ],
)
def test_a_dotted_name_is_complete_and_readable_as_code(written: str, sent: str) -> None:
    assert safe_markdown(written, NO_LINKS) == sent


def test_hostile_words_are_judged_in_linear_time() -> None:
    safe_markdown("a." * 50_000 + "@" * 50_000 + "&" * 50_000 + "1." * 50_000, NO_LINKS)


@pytest.mark.parametrize(
    "sent",
    [
        "[x](https://grafana.example.com/`) evil.com `",
        "https://grafana.example.com/`a` evil.com",
        "https://grafana.example.com|evil.com",
        "https://grafana.example.com/d`evil.com`",
        "(https://grafana.example.com/)`) evil.com`",
    ],
)
def test_an_allowed_address_never_merges_with_code(sent: str) -> None:
    """An eager client takes all up to the next space for the address, a code's first mark too."""
    shown = safe_markdown(sent, GRAFANA)

    assert not re.search(r"https://[^\s`]*`[^\s]", re.sub(r"(?<!\S)\(?`[^`]*`", "", shown))
    assert linked(re.sub(r"https://grafana\.example\.com\S*", "", shown)) is None


@pytest.mark.parametrize("mark", ["> ", "- ", "* ", "1. ", "> - ", "  "])
def test_a_link_reference_definition_is_removed(mark: str) -> None:
    assert "]:" not in safe_markdown(f"{mark}[x]: //evil\n\n[x]", NO_LINKS)


SITE = "https://acme.slack.com"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        (f"{SITE}/archives/C0CHECKOUT/p1763700000000100", True),
        (f"{SITE}/archives/C0CHECKOUT/p1763700000000100?thread_ts=1763700000.000100&cid=C1", True),
        (f"{SITE}/archives/C0CHECKOUT/p1763700000000100?thread_ts=1.1&cid=C1&x=secret", False),
        (f"{SITE}/archives/C0CHECKOUT/p1763700000000100#secret", False),
        (f"{SITE}/link?url=https://evil.test", False),
        (f"{SITE}/archives/secret-words/p1", False),
        (f"{SITE}.evil.test/archives/C0CHECKOUT/p1763700000000100", False),
        (f"{SITE}@evil.test/archives/C0CHECKOUT/p1763700000000100", False),
        ("http://acme.slack.com/archives/C0CHECKOUT/p1763700000000100", False),
        ("https://other.slack.com/archives/C0CHECKOUT/p1763700000000100", False),
        (f"{SITE}/archives/C0CHECKOUT/p1763700000000100\n", False),
    ],
)
def test_only_messages_of_the_workspaces_own_site_are_linked(url: str, allowed: bool) -> None:
    assert LinkPolicy(frozenset(), SITE).allows(url) is allowed
    assert not LinkPolicy().allows(url)
