"""Labelled texts for redaction: a small set of our own, and a reader for larger ones.

Rows of a file are JSON objects: `kind` (positive | negative | …), and for positives `tier`, `text`,
`start`, `end` and, when only a part is the secret, `core_start` and `core_end`.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# «…» is the secret. Tokens are invented; the pieces of each are joined here and nowhere else.
POSITIVES = {
    "A": """
export AWS_ACCESS_KEY_ID=«AKIA|Q3EGRZ7YPWLM2XKD»
remote: https://x-access-token:«ghs_|9aBcD3fGhJkLmN5pQr7Tu8Vw2Xy4Za6Bc1De»@github.com/acme/shop
level=error msg="refused" key=«sk_live_|51Hq81Kq5RtYu0PmWe7Hq2Zx9L»
anthropic said no to «sk-ant-|api03-Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw-AA»
OPENAI «sk-proj-|Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQwT3BlbkFJabcd»
{"bot":"«xoxb-|263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1»"}
posting to https://hooks.slack.com/«services/|T024BE7LD/B0A1C2D3E/Kq51RtYu0PmWe7Hq2Zx9LkJh» failed
token «glpat-|Zx81Kq5RtYu0PmWe7Hq2» revoked
npm ERR! «npm_|a8Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw»
pip: «pypi-|AgEIcHlwaS5vcmcCJGExMDIxZjRhLTFhZDMtNDc4YS1iOWNm»
GET /maps?sensor=false «AIza|SyD3fGhJkLmN5pQr7Tu8Vw2Xy4Za6Bc1DeF»
vault «hvs.|CAESIKq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw»
«eyJhbGciOiJIUzI1NiJ9|.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P»
dsn postgres://app:«s3cr3t-|pw»@db:5432/shop
amqp://guest:«p@ss|w0rd!»@mq.prod:5672/%2f
hash «$2b$12$|KIXQ5s3cFJ1n8H0uM5XbUeYw6pYw8s1QZ0W3e4r5t6y7u8i9o0p1q»
key «-----BEGIN EC PRIVATE KEY-----|\\nMHcCAQEEIKq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw\\n-----END EC PRIVATE KEY-----»
«SG.|Kq51RtYu0PmWe7Hq2Zx9Lk.JhGfDs34aQwKq51RtYu0PmWe7Hq2Zx9LkJhGfDs34a»
«dop_v1_|6f1fbda0e707f3c3b9a678c8f1d21bd42b27230caf210f40641699aa71306cfe»
\\n«ghp_|16C7e42F292c69C2E7C17b853053Be552B8f»\\n
q=%20«glpat-|Zx81Kq5RtYu0PmWe7Hq2»
job uses «apify_|api_Zx81Kq5RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw» now
shop «ck_|6f1fbda0e707f3c3b9a678c8f1d21bd42b27230c»
pager «pdus+|_0XBPWQQ_6b0ff663-e73a-4436-aab2-d319cef8a906»
«pbkdf2_sha256|$260000$qyAgBYHlki3rjOQOjHX2SW$A/vAExsYj8SOlCicdmknVE1RVY2ufMABvY4D38Cj+20=»
jdbc:oracle:thin:scott/«t1ger|-Kq51»@//db:1521/shop
\x1b[31m«npm_|a8Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw»\x1b[0m
DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=«Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQwKq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQwKq51RtYu0PmWe7Hq2Zx9==»;EndpointSuffix=core.windows.net
""",
    "B": """
DB_PASSWORD=«correct|horse9»
password: «dipPr179Gg!»
{"db":{"password":"«Vq8 hunter Lx51»"}}
Authorization: Basic «YWRtaW46aHVudGVyMjI=»
authorization: bearer «Kq51RtYu0PmWe7Hq2Zx9»
X-Api-Key: «Kq51RtYu0PmWe7Hq2Zx9»
curl -u admin:«hunter22» https://grafana.internal/api
mysql -h db -u root -p«Hunter-22x» shop
Set-Cookie: session=«0123456789abcdef0123»; HttpOnly
GET /cb?code=«Kq51RtYu0Pm»&state=ok
https://s3.example/x?X-Amz-Signature=«6f1fbda0e707f3c3b9a678c8f1d21bd42b27230caf210f40641699aa71306cfe»
clientSecret: '«Ufvuj-d6alhwGKxvBm_7Xd4R»'
Server=db;Database=shop;User Id=app;Password=«Pa55w0rd-x»;Encrypt=true
<apiKey>«Kq51RtYu0PmWe7Hq2Zx9»</apiKey>
var algoliaToken string = "«6f1fbda0e707f3c3b9a678c8f1d21bd4»"
etsy_key: «6f1fbda0e707f3c3b9a678c8f1d21bd4»
rollbar("«6f1fbda0e707f3c3b9a678c8f1d21bd4»")
GET /forecast?q=Bern&appid=«6f1fbda0e707f3c3b9a678c8f1d21bd4»
ldapsearch -x -D cn=admin -w «Hunter-22x» -b dc=shop
java -jar app.jar --password=«Hunter22x»
machine github.com login ci password «Kq51RtYu0Pm»
PresharedKey = «uRsfsZ2Ts1rach4Zv3hhwcx6wa9wfGp4v5i1vj+8i59=»
    STRIPE_SECRET_KEY:   «Kq51RtYu0PmWe7Hq2Zx9»
//registry.npmjs.org/:_authToken=«0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0»
{"auths":{"ghcr.io":{"auth":"«Y2k6S3E1MVJ0WXUwUG1XZTc=»"}}}
""",
    "P1": """
mail «ana.silva@shop.example» now
paid with «4111 1111 1111 1111»
card «378282246310005» declined
IBAN «DE89 3704 0044 0532 0130 00» refused
ssn «219-09-9999»
call «+49 30 901820» or page
ring «(415) 555-2671» now
tel:«+44 20 7946 0958»
?mail=«ana.silva%40shop.example»&x=1
wallet «1BoatSLRHtKNngkdXEeobR76b53LETtpyT»
""",
}
NEGATIVES = """
commit 3f786850e387550fdab836ed7e6dc881de23001b rolled out
image sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 pulled in 2.703s
traceparent 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 span_id=5c58c844da331e90
"uid": "c3e3d3f3-cb32-11e9-990f-42010a800218"
{"ts":1743583657548,"nanos":1743583657548123456,"pid":1,"reqId":"req-ig","responseTime":0.631173999980092}
checkout-7d9f6c5b8-x2x7p 1/1 Running 2 (15m ago) 42h 10.244.1.82 kind-node-worker/172.18.0.2
sum(rate(http_requests_total{service="checkout",code=~"5.."}[5m])) by (pod)
kube_secret_info{namespace="ns1",secret="db-credentials-v2"} 1
automountServiceAccountToken: false
secretName: checkout-tls-8x2lq
  Normal  Pulled  pod/web-0  Successfully pulled image "eu.gcr.io/acme/shop:v1.24.3-rc.1" (2.7s)
token: expired
password authentication failed for user "app"
password = ${DB_PASSWORD}
cache_key=user:1234:profile max_tokens=4096 next_page_token=none
partition key order-2024-11-21 idempotency_key=123e4567-e89b-12d3-a456-426614174000
systemd[1]: Started user@1000.service. clone git@github.com:acme/shop.git
Slack ts 1700000000.000100 in C024BE7LD by U024BE7LH
ISBN 978-3-16-148410-0, build 20241121.3, part 555-123-4567-A
rabbitmq disk_free_limit 4000000000 mem 4503599627370496 fd 1048576
2025-04-24T19:51:48.520963849Z level=info msg="Starting Grafana" version=11.5.2
GET /api/v1/namespaces/default/secrets/db-credentials 403 in 12ms
heroku[web.1]: source=web.1 request_id=4f2e8a90-1b3c-4d5e-8f90-a1b2c3d4e5f6
TRAVIS_COMMIT=3f786850e387550fdab836ed7e6dc881de23001b NEWRELIC_VERSION: 9f86d081884c7d659a2feaa0c55ad015
datadog/agent:7.32@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
okta.session_id: 4f2e8a90-1b3c-4d5e-8f90-a1b2c3d4e5f6 sendgrid-worker-6c8d9f7b5d-9xk2p
last call: 2026-11-21 18:00:00 tel 112 call 1234 failed
fingerprint SHA256:uNiVztksCsDhcc0u9e8BrrJXVGDP3a6eT4DYu1P7yl0 ami-0123456789abcdef0
data: Y29uZmlnOiBkZWJ1Zwpsb2dsZXZlbDogaW5mbwo=
security: {authorization: disabled} x-api-key: required headers["Authorization"] = auth_header
META_KEY = "io.modelcontextprotocol/protocolVersion" key: "node.kubernetes.io/outOfService"
"""


_MARK = re.compile(r"\[redacted:[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Row:
    """One text. `start` and `end` are characters of the secret in a positive one."""

    kind: str
    tier: str
    text: str
    start: int = 0
    end: int = 0


def own() -> Sequence[Row]:
    """The texts above."""
    positives = [
        _positive(tier, line) for tier, text in POSITIVES.items() for line in text.split("\n")[1:-1]
    ]
    return [*positives, *(Row("negative", "", line) for line in NEGATIVES.split("\n")[1:-1])]


def read(path: Path) -> Sequence[Row]:
    """The rows of a JSON Lines file."""
    return [_row(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def recall(rows: Iterable[Row], tier: str, redact: Callable[[str], str]) -> tuple[int, list[Row]]:
    """The number of secrets in a tier, and the ones with more than a tenth left."""
    chosen = [r for r in rows if r.kind == "positive" and r.tier == tier]
    return len(chosen), [r for r in chosen if _is_left(r, redact(r.text))]


def changed(rows: Iterable[Row], redact: Callable[[str], str]) -> list[Row]:
    """The negatives that do not come out as they went in."""
    return [r for r in rows if r.kind == "negative" and redact(r.text) != r.text]


def _is_left(row: Row, redacted: str) -> bool:
    """Whether a piece of the secret longer than a tenth of it is still to be read.

    Judged without knowing what the redactor did: the text before and after it is cut away as far
    as it is unchanged.
    """
    secret, before, after = (
        row.text[row.start : row.end],
        row.text[: row.start],
        row.text[row.end :],
    )
    same = 0
    while same < len(before) and redacted[same : same + 1] == before[same]:
        same += 1
    behind = 0
    while behind < len(after) and redacted[len(redacted) - 1 - behind] == after[-1 - behind]:
        behind += 1
    middle = _MARK.sub("", redacted[same : len(redacted) - behind])
    size = max(4, len(secret) // 10 + 1)
    return any(secret[at : at + size] in middle for at in range(max(1, len(secret) - size + 1)))


def _positive(tier: str, line: str) -> Row:
    before, rest = line.split("«")
    secret, after = rest.replace("|", "", 1).split("»")
    before, after = before.replace("\\n", "\n"), after.replace("\\n", "\n")
    return Row("positive", tier, before + secret + after, len(before), len(before) + len(secret))


def _row(read: dict[str, object]) -> Row:
    start, end = (
        read.get("core_start", read.get("start", 0)),
        read.get("core_end", read.get("end", 0)),
    )
    kind, tier, text = (str(read.get(name) or "") for name in ("kind", "tier", "text"))
    assert isinstance(start, int)
    assert isinstance(end, int)
    return Row(kind, tier, text, start, end)
