"""A foreign tool cannot reach another team's product, with the name in any argument."""

import base64
import bz2
import gzip
import json
import lzma
import re
import time
import zlib
from collections.abc import Callable
from urllib.parse import quote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, JsonValue

from tests.fakes.capabilities import call_context
from tests.fakes.tools import contract
from tools.admission import parsed_arguments
from tools.contract import ToolInput
from tools.hidden_texts import LOOK_ALIKES
from tools.named_products import named_products
from tools.product_names import POD_TAIL
from tools.products import CANNOT_BE_TOLD, FOREIGN_QUERY, Reading, refusal, usual_scope

Form = Callable[[str], JsonValue]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def full_width(value: JsonValue) -> JsonValue:
    """The same with every letter of its keys and texts full-width."""
    match value:
        case dict():
            return {str(full_width(key)): full_width(each) for key, each in value.items()}
        case list():
            return [full_width(each) for each in value]
        case str():
            return value.translate({code: code + 0xFEE0 for code in range(ord("a"), ord("z") + 1)})
        case _:
            return value


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


def a_filter(name: str) -> bytes:
    return json.dumps({"filter": {"service": name}, "limit": 5}).encode()


INSIDE = call_context(products=("checkout", "web"), reading=Reading.PRODUCTS)

FORMS: dict[str, Form] = {
    "a nested object": lambda name: {"filter": {"service": name}},
    "a list of objects": lambda name: {"filters": [{"limit": 1}, {"service": name}]},
    "a list beside an own product": lambda name: {"services": ["checkout", name]},
    "a dotted key": lambda name: {"match": {"service.name": name}},
    "a camel-case key": lambda name: {"where": {"serviceName": name}},
    "an operator object": lambda name: {"filter": {"service": {"eq": name}}},
    "an operator with a list": lambda name: {"filter": {"service": {"in": ["web", name]}}},
    "a field and its value": lambda name: {"conditions": [{"field": "service", "value": name}]},
    "a field, an operator, values": lambda name: {
        "all": {"key": "app", "op": "in", "values": [name]}
    },
    "a selector in a text": lambda name: {"query": f'{{service="{name}"}} |= "error"'},
    "a search term": lambda name: {"q": f"level:error AND service:{name}"},
    "SQL": lambda name: {"sql": f"… from logs where app = '{name}' limit 5"},
    "a list in SQL": lambda name: {"sql": f"… where service_name in ('web', '{name}')"},
    "a query string": lambda name: {"path": f"/logs?service={name}&limit=10"},
    "a term's object": lambda name: {"query": {"term": {"service.name.keyword": {"value": name}}}},
    "a key within a resource": lambda name: {"match": {"resource.service.name": name}},
    "a key with an operator": lambda name: {"service__in": [name]},
    "a key in brackets": lambda name: {"filter[service][eq]": name},
    "a key with a place": lambda name: {"service[0]": "web", "service[1]": name},
    "a key with a place and an operator": lambda name: {"filter.services.0.eq": name},
    "a Kubernetes label": lambda name: {"labels": {"app.kubernetes.io/name": name}},
    "a Kubernetes selector": lambda name: {"selector": f"app.kubernetes.io/name={name},tier=web"},
    "a list that compares": lambda name: {"where": ["and", ["service", "=", name]]},
    "pairs": lambda name: {"labels": [["env", "prod"], ["app", name]]},
    "two sides": lambda name: {"left": "svc", "op": "==", "right": name},
    "a matcher": lambda name: {
        "matchers": [{"name": "service", "value": name, "isRegex": False, "isEqual": True}]
    },
    "options": lambda name: {"args": ["logs", "--service", name]},
    "options in a text": lambda name: {"command": f"logs --service {name} --since 1h"},
    "JSON in a text": lambda name: {"body": json.dumps([{"field": "service", "value": name}])},
    "JSON in JSON in a text": lambda name: {"body": json.dumps(json.dumps({"service": [name]}))},
    "a key twice in JSON": lambda name: {"body": f'{{"service":"{name}","service":"web"}}'},
    "JSON by line": lambda name: {"body": f'{{}}\n{{"field": "service", "value": "{name}"}}\n'},
    "an encoded query string": lambda name: {"path": f"/logs?q=%7Bservice%3D%22{name}%22%7D"},
    "a query string encoded twice": lambda name: {"path": f"/logs?q=service%253D{name}"},
    "TraceQL": lambda name: {"q": f'{{ resource.service.name = "{name}" && status = error }}'},
    "LogQL with a filter": lambda name: {"q": f'{{job=~".+"}} | json | service=`{name}`'},
    "PromQL 3": lambda name: {"q": f'{{"http.requests", "service.name"="{name}"}}'},
    "Lucene with alternatives": lambda name: {"q": f"service:(web OR {name})"},
    "Lucene with an escape": lambda name: {"q": f"service\\.name:{name}"},
    "KQL": lambda name: {"q": f"Logs | where Service == '{name}' | summarize count() by Service"},
    "GraphQL": lambda name: {"query": f'{{ logs(where: {{service: "{name}"}}) {{ line }} }}'},
    "YAML": lambda name: {"filter": f"limit: 5\nservice: {name}\n"},
    "SQL with a comment": lambda name: {"sql": f"… where service/* x */= '{name}'"},
    "SQL with a comment to the end": lambda name: {"sql": f"… where service -- x\n= '{name}'"},
    "SQL with a join": lambda name: {"sql": f"… join s on s.id = l.id where s.service = '{name}'"},
    "SQL the other way round": lambda name: {"sql": f"… where '{name}' = l.service"},
    "SQL with a function": lambda name: {"sql": f"… where lower(l.service) = '{name}'"},
    "SQL with a cast": lambda name: {"sql": f"… where cast(service as text) = '{name}'"},
    "a job in a selector": lambda name: {"query": f'rate(errors_total{{job="shop/{name}"}}[5m])'},
    "a job among labels": lambda name: {"labels": {"job": name}},
    "a job in a condition": lambda name: {"filters": [{"key": "job", "op": "=", "value": name}]},
    "a deployment": lambda name: {"deployment": name, "namespace": "shop"},
    "a deployment's label": lambda name: {"q": f'{{k8s.deployment.name="{name}"}}'},
    "a deployment's attribute": lambda name: {"match": {"k8s.deployment.name": name}},
    "a path": lambda name: {"path": f"/api/v1/services/{name}/logs?limit=5"},
    "an encoded path": lambda name: {"url": f"http://x/apps%2F{name}"},
    "an object of a cluster": lambda name: {"resource": f"deployment/{name}"},
    "Base64": lambda name: {"q": encoded(f'service="{name}" level=error')},
    "JSON in Base64": lambda name: {"q": encoded(json.dumps({"filter": {"service": name}}))},
    "a query of several fields": lambda name: {
        "query": {"multi_match": {"query": name, "fields": ["service.name^3", "message"]}}
    },
    "a column of CSV": lambda name: {"csv": f"service,metric\nweb,cpu\n{name},cpu"},
    "a later column of CSV": lambda name: {"rows": f'"metric";"service"\n"cpu";"{name}"'},
    "a column of TSV": lambda name: {"data": f"at\tapp\n1\t{name}\n"},
    "a column alone": lambda name: {"data": f"service_name\n{name}"},
    "a list in a key's text": lambda name: {"services_csv": f"web,{name}"},
    "Cypher's field": lambda name: {"q": f"MATCH (s:Service {{name: '{name}'}})-[r]->(t) RETURN r"},
    "Cypher's condition": lambda name: {"q": f"MATCH (s:Service) WHERE s.name = '{name}' RETURN s"},
    "Cypher's list": lambda name: {
        "q": f'MATCH (a:App) WHERE a.name IN ["web", "{name}"] RETURN a'
    },
    "Gremlin": lambda name: {"q": f"g.V().has('service', 'name', '{name}').out()"},
    "Azure's role": lambda name: {"q": f"requests | where cloud_RoleName == '{name}'"},
    "gzip in Base64": lambda name: {"q": packed(gzip.compress(a_filter(name)))},
    "zlib in Base64": lambda name: {"q": packed(zlib.compress(a_filter(name)))},
    "deflate in Base64": lambda name: {"q": packed(zlib.compress(a_filter(name))[2:-4])},
    "bzip2 in Base64": lambda name: {"q": packed(bz2.compress(a_filter(name)))},
    "xz in Base64": lambda name: {"q": packed(lzma.compress(a_filter(name)))},
    "gzip in gzip": lambda name: {"q": packed(gzip.compress(gzip.compress(a_filter(name))))},
    "Base64 in Base64 in JSON": lambda name: {
        "q": json.dumps({"f": packed(packed(a_filter(name)).encode())})
    },
    "Base64 behind a key": lambda name: {"q": f"filter={packed(a_filter(name))}&limit=5"},
    "a data address": lambda name: {
        "url": f"data:application/json;base64,{packed(a_filter(name))}"
    },
    "Base64 over lines": lambda name: {"q": base64.encodebytes(a_filter(name) * 3).decode()},
    "hexadecimal": lambda name: {"q": a_filter(name).hex()},
    "Base32": lambda name: {"q": base64.b32encode(a_filter(name)).decode()},
    "an encoded JSON": lambda name: {"q": quote(quote(a_filter(name).decode()))},
    "encoded Base64": lambda name: {"q": quote(packed(a_filter(name)), safe="")},
    "entities of HTML": lambda name: {"q": f"service&#61;{name} service&equals;{name}"},
    "escapes": lambda name: {"q": f"\\u0073ervice=\\x{ord(name[0]):02x}{name[1:]}"},
    "a pod": lambda name: {"pod": f"{name}-7d9f8bcdf5-x2c4d"},
    "a pod with a short end": lambda name: {"pod_name": f"{name}-7d9f-abc"},
    "a pod of a set": lambda name: {"podName": f"{name}-0"},
    "pods": lambda name: {"pods": ["web-0", f"shop/{name}-7d9f-abc"]},
    "a pod's label": lambda name: {"labels": {"k8s.pod.name": f"{name}-7d9f-abc"}},
    "a pod's condition": lambda name: {
        "filters": [{"key": "pod", "op": "=", "value": f"{name}-0"}]
    },
    "a pod among pairs": lambda name: {"labels": [["env", "prod"], ["k8s.pod.name", f"{name}-0"]]},
    "a pod in a list that compares": lambda name: {"where": ["pod", "=", f"{name}-7d9f-abc"]},
    "a deployment among options": lambda name: {"args": ["rollout", "--deployment", name]},
    "a pod in a selector": lambda name: {"q": f'{{pod="{name}-7d9f-abc"}} |= "x"'},
    "a pod's pattern": lambda name: {"q": f'rate(x{{pod=~"{name}{POD_TAIL}"}}[5m])'},
    "a pod's patterns": lambda name: {"q": f'{{pod=~"web-[0-9]+|^{name}-\\\\d{{1,2}}$"}}'},
    "pods in full": lambda name: {"q": f'{{pod=~"web-0|{name}-7d9f8bcdf5-x2c4d"}}'},
    "a pod of kubectl": lambda name: {"command": f"kubectl -n shop logs --tail 5 {name}-7d9f-abc"},
    "a pod by its kind": lambda name: {
        "kind": "Pod",
        "namespace": "shop",
        "name": f"{name}-7d9f-abc",
    },
    "a pod's path": lambda name: {"path": f"/api/v1/namespaces/shop/pods/{name}-7d9f-abc/log"},
    "a replica in a text": lambda name: {"note": f"look at {name}-7d9f8bcdf5-x2c4d please"},
    "a column in brackets": lambda name: {"q": f'filter(fn: (r) => r["service"] == "{name}")'},
    "a list's parameter": lambda name: {"path": f"/logs?service%5B%5D={name}&services[0]={name}"},
    "OData": lambda name: {"q": f"$filter=service eq '{name}' and level eq 'error'"},
    "GraphQL's node": lambda name: {"query": f'{{ service(name: "{name}") {{ logs }} }}'},
    "a block": lambda name: {"hcl": f'service {{\n  name = "{name}"\n}}'},
    "a label's name and value": lambda name: {"label_name": "service", "label_value": name},
    "a field in an object": lambda name: {"dimension": {"name": "service"}, "value": name},
    "an operator over two": lambda name: {"where": {"$expr": {"$eq": ["$service", name]}}},
    "a row in SQL": lambda name: {"sql": f"… where (service, level) = ('{name}', 'error')"},
    "rows in SQL": lambda name: {"sql": f"… where (n, l.app) in ((1, 'web'), (2, '{name}'))"},
    "one column of a row": lambda name: {"sql": f"… where (service) in ('web', '{name}')"},
    "a literal called so": lambda name: {"sql": f"… join ('{name}' as service) s using (service)"},
    "values called so": lambda name: {
        "sql": f"with s(app) as (values ('{name}')) … l join s using (app)"
    },
    "values before their name": lambda name: {
        "sql": f"… (values ('{name}', 1)) as s(app, n) using (app)"
    },
    "another name for a column": lambda name: {"sql": f"… service as s from l having s = '{name}'"},
    "another name within": lambda name: {
        "sql": f"… ( app as \"a b\", x as y, app as a from l) where a = '{name}'"
    },
    "a column in brackets alone": lambda name: {"sql": f"… where (service) = '{name}'"},
    "a field and its value in a query": lambda name: {
        "path": f"/logs?key=service&value={name}&limit=5"
    },
    "a field, an operator, a value in a query": lambda name: {
        "q": f"limit=5&field=app&op=eq&value={name}"
    },
    "numbered filters in a query": lambda name: {
        "path": f"/logs?f[0][key]=level&f[0][value]=error&f[1][key]=service&f[1][value]={name}"
    },
    "filters again and again in a query": lambda name: {
        "q": f"key=level&value=error&key=app&value={name}"
    },
    "numbered keys": lambda name: {
        "filter_key_1": "service",
        "filter_value_1": name,
        "filter_key_2": "level",
    },
    "columns and rows": lambda name: {
        "columns": ["level", "service"],
        "rows": [["x", "web"], ["x", name]],
    },
    "columns with types and rows": lambda name: {
        "schema": [{"name": "n"}, {"name": "app"}],
        "data": [[1, name]],
    },
    "columns and one row": lambda name: {
        "fields": ["level", "service"],
        "ops": ["=", "="],
        "values": ["x", name],
    },
    "keys and values": lambda name: {"keys": ["service"], "values": [name]},
    "names and values": lambda name: {
        "label_names": ["env", "app"],
        "label_values": ["prod", name],
    },
    "a table with its head": lambda name: {
        "table": [["n", "level", "service"], [1, "error", name]]
    },
    "columns and rows in a text": lambda name: {
        "body": json.dumps({"c": ["app"], "r": [["web"], [name]]})
    },
    "a pair in a text": lambda name: {"q": f'("service", "{name}")'},
    "pairs in a text": lambda name: {"q": f"[('level', 'error'), ('service', '=', '{name}')]"},
    "a function of two": lambda name: {
        "q": f"and(equals(level, 'error'), equals(service, '{name}'))"
    },
    "a flat list": lambda name: {"filter": ["service", name]},
    "a flat list of pairs": lambda name: {"where": ["level", "error", "app", name]},
    "words of a command": lambda name: {"args": ["rollout", "status", "deployment", name]},
    "a text of two words": lambda name: {"q": f"service|{name}"},
    "a text with an arrow": lambda name: {"q": f" Service -> {name}"},
    "a text with a bracket": lambda name: {"q": f"application({name})"},
    "a text with a tab": lambda name: {"q": f"svc\t{name}"},
    "a text of a word and a quote": lambda name: {"q": f"service '{name}'"},
    "an object of kubectl": lambda name: {"target": f"svc/{name}"},
    "an object by its kind": lambda name: {"kind": "Service", "name": name, "namespace": "shop"},
    "an object by its type": lambda name: {"find": {"entityType": "SERVICE", "entityId": name}},
    "objects of a type": lambda name: {"resource": "applications", "names": ["web", name]},
    "UTF-16 in Base64": lambda name: {
        "cmd": packed(f'logs -Where service="{name}"'.encode("utf-16-le"))
    },
    "UTF-16 in Base64, the other end first": lambda name: {
        "cmd": packed(f'logs -Where service="{name}"'.encode("utf-16-be"))
    },
    "further escapes": lambda name: {"q": f"\\u{{73}}ervice=\\U{ord(name[0]):08x}{name[1:]}"},
    "deep": lambda name: {"a": [{"b": [{"c": {"d": [{"product": [name]}]}}]}]},
}
# Of letters that are no letters once they are full-width.
PACKED = {
    name
    for name in FORMS
    if any(
        kind in name
        for kind in ("Base", "gzip", "data address", "hexa", "encoded", "escapes", "HTML")
    )
}
# Each reads more than the channel's own products, though it names none of another team.
WILDCARDS: list[JsonValue] = [
    {"service": "checkout", "filter": {"service": "*"}},
    {"filter": {"service": "check*"}},
    {"filter": {"service": ["checkout", "%"]}},
    {"filter": {"service": {"ne": "checkout"}}},
    {"filter": {"service": {"$not": {"eq": "checkout"}}}},
    {"filter": {"field": "service", "op": "!=", "value": "checkout"}},
    {"filter": {"field": "service", "op": "regex", "value": "web"}},
    {"query": '{service=~"check.*"}'},
    {"query": '{service=~"checkout"}'},
    {"query": 'service != "checkout"'},
    {"query": "service:*"},
    {"query": "app not in (checkout)"},
    {"query": "app like 'check%'"},
    {"query": 'service=""'},
    {"filter": {"not": {"service": "checkout"}}},
    {"query": {"bool": {"must_not": [{"term": {"service": "checkout"}}]}}},
    {"filter": {"service__startswith": "check"}},
    {"filter": {"exclude_services": ["checkout"]}},
    {"where": ["service", "like", "check%"]},
    {"matchers": [{"name": "service", "value": "checkout", "isRegex": True}]},
    {"query": "NOT service:checkout"},
    {"query": "-@service:checkout"},
    {"query": "!service:checkout is:unresolved"},
    {"query": "Logs | where service startswith 'check'"},
    {"sql": "… where service similar to 'check%'"},
    {"sql": "… where service between 'a' and 'z'"},
    {"sql": "… where service > 'a'"},
    {"sql": "… where service in (select name from services)"},
    {"sql": "… where service in ('checkout', ('payments'))"},
    {"service": "checkout|payments"},
    {"service": "shop/payments"},
    {"service": " payments "},
    {"service": "Checkout"},
    {"query": "service\u00a0=\u00a0payments"},
    {"xml": "<service>payments</service>"},
    {"toml": '[service]\nname = "checkout"'},
    {"sql": "… where app in (select 'checkout')"},
    {"q": "MATCH (s:Service) RETURN s"},
    {"q": "MATCH (s:Service {name: $name}) RETURN s", "params": {"name": "payments"}},
    {"q": "MATCH (s:Service) WHERE s.name STARTS WITH 'check' RETURN s"},
    {"q": "g.V().has('service', neq('checkout'))"},
    {"sql": "… where service = 'check' || 'out'"},
    {"sql": "… where service = 'checkout' + x"},
    {"q": packed(gzip.compress(b"x" * 1_000_000, mtime=0))},
    {"q": packed(gzip.compress(a_filter("checkout"), mtime=0)[:-12])},
    {
        "q": packed(
            gzip.compress(a_filter("checkout"), mtime=0)
            + gzip.compress(a_filter("payments"), mtime=0)
        )
    },
    {"q": packed(b"\x28\xb5\x2f\xfd" + b"zstandard" * 3)},
    {"pod": "check*"},
    {"pod": "checkout-api-7d9f-abc"},
    {"q": '{pod=~"check.*"}'},
    # Each also matches pods of a product whose name begins with the channel's: `checkout-admin-0`.
    {"q": 'rate(x{pod=~"checkout-.*"}[5m])'},
    {"q": '{pod=~"web-0|checkout-.+"}'},
    {"q": '{k8s_pod_name=~"^checkout-[a-z0-9]+-[a-z0-9]+$"}'},
    {"q": '{pod=~"(checkout|web)-.*"}'},
    {"q": '{pod=~"checkout-(admin-)?[0-9]+"}'},
    {"labels": [["pod", "checkout-*"]]},
    {"q": 'Logs | where Service in~ ("checkout")'},
    {"q": 'Logs | where Service !in ("checkout")'},
    {"q": "service ne 'checkout'"},
    {"where": {"$ne": ["$service", "checkout"]}},
    {"q": "{ service(name: $name) { logs } }"},
    {"q": 'kube_pod_info{pod=~"checkout.{1,20}"}'},
    {"sql": "… where (service, level) in (select 'checkout', 'error')"},
    {"sql": "… where (service, level) <> ('checkout', 'error')"},
    {"sql": "… where (service, level) not in (('checkout', 'error'))"},
    {"sql": "… where case service when 'checkout' then 0 else 1 end = 1"},
    {"sql": "… where nullif(service, 'checkout') is not null"},
    {"q": "startswith(service, 'check')"},
    {"q": "('service', '!=', 'checkout')"},
    {"path": "/logs?key=service&op=ne&value=checkout"},
    {"path": "/logs?f[0][key]=service&f[0][value]=check*"},
    {"filter_key": "service", "filter_op": "!=", "filter_value": "checkout"},
    {"columns": ["service__ne"], "rows": [["checkout"]]},
    {"keys": ["service"], "values": ["*"]},
]
HARMLESS: list[JsonValue] = [
    {"query": "connection refused", "limit": 5},
    {"query": "the service was slow, payments said"},
    {"filter": {"level": "error", "name": "payments"}},
    {"query": "the application is not responding, and the service in Berlin has trouble"},
    {"query": "checkout-service: timeout", "line": "kubelet.service: Main process exited"},
    {"query": 'sum(rate(http_requests_total{code=~"5.."}[5m])) by (service) > 0'},
    {"group_by": ["service", "version"], "fields": ["app", "message"]},
    {"path": "/app/server.js", "q": "java.lang.Exception at com.app.Main"},
    {"query": "50% of requests fail", "service_version": "1.2", "service_account": "ci"},
    {
        "query": "the app: is it down?",
        "note": "our service: why does it fail",
        "q": "product: the pool",
    },
    {"max_services": 5, "service_count": 2**63 - 1, "include_apps": True, "top_components": 3.5},
    {"job": "lint", "job_id": "7f3c", "deployment_id": 12, "text": "job: lint\ndeployment: prod"},
    {"query": '{job=~".+"} | json', "q": "job:* AND level:error", "deployment": None},
    {"path": "/srv/services/server.js", "url": "https://docs.example/guide"},
    {"query": {"multi_match": {"query": "refused", "fields": ["message", "level"]}}},
    {"query": "level:error", "fields": ["app", "message"]},
    {"data": "aGVsbG8gd29ybGQsIGFsbCBpcyB3ZWxs", "id": "0123456789abcdef0123456789abcdef"},
    {"service": None, "filter": {}, "body": '{"level": "error"}'},
    {"note": "a microservice architecture", "n": 2**63 - 1, "x": None},
    {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span": "b7ad6b7169203331"},
    {"q": '{pod=~".+"}', "query": "up{pod=~'.*'}", "command": "kubectl get pods -n shop -o wide"},
    {"q": "{ logs(limit: 5) { line } }", "note": "the service (name: see below) is in ruins"},
    {"group": {"$push": ["$level", "$message"]}, "fields": {"name": "level"}},
    {"csv": "time,value\n1,2\n3,4", "note": "one, two\nthree, four"},
    {"q": "MATCH (h:Host {name: 'db-1'}) RETURN h", "g": "g.V().has('host', 'name', 'db-1')"},
    {"uuid": "550e8400-e29b-41d4-a716-446655440000", "sha": "9f2ab17" + "0" * 33},
    {"columns": ["service", "message"], "order": ["asc", "desc"], "limit": 5},
    {"group_by": ["service"], "metrics": ["cpu", "memory"], "values": ["service", "count"]},
    {"args": ["get", "service", "-n", "shop"], "argv": ["top", "--services"]},
    {"labels": ["service", "pod"], "by": ["app", "version"], "order_by": ["service", "time"]},
    {"query": "service down", "pattern": "app crashed", "q": "the service's logs"},
    {"file": "app/models/user.rb", "path": "app/main", "text": "service|"},
    {"kind": "Service", "namespace": "shop", "type": "application", "level": "error"},
    {"größe": "payments", "query": "сервис упал, приложение тоже", "q": "μ-law, 5 µs, αβγ"},
    {"fields": ["service", "level"], "rows": 50, "data": [], "values": None},
    {
        "sql": "with s(service, n) as (select service, count(*) from l group by service) select n from s"
    },
    {"sql": "select coalesce(service, 'none') as label, level as l from logs where l = 'error'"},
    {
        "q": 'label_replace(up, "service", "$1", "pod", "(.*)-.*")',
        "flux": 'group(columns: ["app", "host"])',
    },
    {
        "path": "/logs?sort=service&order=desc&value=5",
        "sort_field": "app",
        "sort_type": "desc",
    },
    {"sql": "select sum(n) from l where (level, code) in (('error', '500'), ('warn', '499'))"},
    {
        "metric_name": "requests",
        "metric_value": 3,
        "service_tier_name": "gold",
        "user_name": "app",
        "user_id": 5,
    },
    {"table": [["time", "value"], [1, 2]], "pairs": [["env", "prod"], ["level", "error"]]},
    {"image": packed(bytes(range(256))), "token": "AbCdEfGhIjKlMnOpQrStUvWx"},
]


class AnyInput(ToolInput):
    model_config = ConfigDict(extra="allow")


FOREIGN = contract(input=AnyInput, products=FOREIGN_QUERY)


def refused(arguments: JsonValue) -> str | None:
    return refusal(
        FOREIGN.products, parsed_arguments(FOREIGN, orjson.dumps(arguments).decode()), INSIDE
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_another_teams_product_is_refused_in_every_form(form: Form) -> None:
    assert "outside this channel's products (checkout, web)" in (refused(form("payments")) or "")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_permitted_product_passes_in_every_form(form: Form) -> None:
    assert refused(form("checkout")) is None


@pytest.mark.parametrize("arguments", WILDCARDS, ids=str)
def test_a_wildcard_or_a_negation_is_refused(arguments: JsonValue) -> None:
    assert refused(arguments) is not None


@pytest.mark.parametrize("arguments", HARMLESS, ids=lambda each: orjson.dumps(str(each)).decode())
def test_arguments_without_a_product_pass(arguments: JsonValue) -> None:
    assert refused(arguments) is None


@pytest.mark.parametrize("name", sorted(FORMS.keys() - PACKED))
def test_full_width_letters_hide_nothing(name: str) -> None:
    assert refused(full_width(FORMS[name]("payments"))) is not None


def with_each_word_split(value: JsonValue, by: str) -> JsonValue:
    """The same with that character behind the first letter of every word."""
    match value:
        case dict():
            return {
                str(with_each_word_split(key, by)): with_each_word_split(each, by)
                for key, each in value.items()
            }
        case list():
            return [with_each_word_split(each, by) for each in value]
        case str():
            return re.sub(r"\b([a-z])(?=[a-z])", rf"\1{by}", value)
        case _:
            return value


@given(
    name=st.sampled_from(sorted(FORMS.keys() - PACKED)),
    char=st.sampled_from(
        "\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u2060\u3164\ufe0f\ufeff\uffa0\U000e0041"
    ),
)
def test_characters_that_cannot_be_seen_hide_nothing(name: str, char: str) -> None:
    assert refused(with_each_word_split(FORMS[name]("payments"), char)) is not None


def test_an_unknown_name_is_refused_with_how_to_ask() -> None:
    words = refused({"filter": {"service": "check*"}}) or ""
    assert "this channel's products (checkout, web)" in words
    assert 'name one product in full, such as service="NAME"' in words


ELSEWHERE = call_context(
    products=("checkout", "payments-web"),
    reading=Reading.PRODUCTS,
    elsewhere=("payments", "*", "Cart.v2"),
)
MENTIONS: dict[str, Form] = {
    "a text alone": lambda name: {"q": name},
    "a cell": lambda name: {"data": f"checkout,{name}"},
    "a table": lambda name: {"sql": f"… count(*) from {name} limit 5"},
    "a schema": lambda name: {"sql": f"… count(*) from {name}.logs"},
    "a host": lambda name: {"host": f"{name}.prod.svc.cluster.local"},
    "an address": lambda name: {"url": f"http://{name}/healthz"},
    "an instance": lambda name: {"q": f'up{{instance="{name}:9090"}}'},
    "a container": lambda name: {"container": name},
    "an index": lambda name: {"index": f"logs-{name}-2026.11"},
    "a repository": lambda name: {"repo": f"shop/{name}"},
    "a source": lambda name: {"q": f"search index=main source={name}"},
    "a topic in Base64": lambda name: {"q": packed(f"topic: events.{name}.v1".encode())},
    "a key": lambda name: {name: True},
    "capitals": lambda name: {"host": name.upper()},
}


def refused_elsewhere(arguments: JsonValue) -> str | None:
    sent = parsed_arguments(FOREIGN, json.dumps(arguments))
    return refusal(FOREIGN.products, sent, ELSEWHERE)


@pytest.mark.parametrize("name", ["payments", "Cart.v2"])
@pytest.mark.parametrize("form", MENTIONS.values(), ids=MENTIONS)
def test_a_known_product_of_another_channel_is_found_under_any_key(form: Form, name: str) -> None:
    assert "outside this channel's products" in (refused_elsewhere(form(name)) or "")


@pytest.mark.parametrize("name", ["checkout", "payments-web", "other"])
@pytest.mark.parametrize("form", MENTIONS.values(), ids=MENTIONS)
def test_a_permitted_product_that_contains_another_ones_name_passes(form: Form, name: str) -> None:
    assert refused_elsewhere(form(name)) is None


@pytest.mark.parametrize(
    "text",
    [
        "the service was slow, payments said",
        "payments",
        "why do payments fail, and refunds?",
        "all payments-related alerts",
        "payments-side errors, or Payments-like ones.",
        "payments-related",
    ],
)
def test_a_word_of_a_sentence_is_not_a_product(text: str) -> None:
    assert (refused_elsewhere({"query": text}) is None) == (" " in text)


@pytest.mark.parametrize(
    "text",
    [
        "… count(*) from payments-related where level = 'error'",
        "index main source=payments-related",
        "logs of payments-related-7d9f-abc now",
        "see payments-related.svc for more",
        "look at payments-web1 now",
        "rows of payments-wide/2026 only",
    ],
)
def test_a_name_within_a_sentence_is_a_product(text: str) -> None:
    assert refused_elsewhere({"query": text}) is not None


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "pods", "name": "payments-7d9f-abc"},
        {"query": 'rate(requests_total{pod=~"payments-.*"}[5m])'},
        {"query": 'up{pod=~"checkout-0|payments-[a-z0-9]+-[a-z0-9]+"}'},
        {"pod": "payments-0"},
        {"query": 'rate(requests_total{service="payments"}[5m])'},
        {"query": 'up{job="shop/payments"}'},
    ],
)
def test_a_tool_with_its_own_query_language_cannot_name_another_channels_product(
    arguments: JsonValue,
) -> None:
    query = contract(input=AnyInput, products=CANNOT_BE_TOLD)
    sent = parsed_arguments(query, json.dumps(arguments))
    assert refusal(query.products, sent, ELSEWHERE) is not None
    own = json.dumps(arguments).replace("payments", "checkout")
    assert refusal(query.products, parsed_arguments(query, own), ELSEWHERE) is None


def test_a_label_of_a_permitted_series_may_contain_another_channels_product() -> None:
    query = contract(input=AnyInput, products=CANNOT_BE_TOLD)
    sent = parsed_arguments(
        query, '{"query": "rate(x{service=\\"checkout\\",peer=\\"payments\\"}[5m])"}'
    )
    assert refusal(query.products, sent, ELSEWHERE) is None


def look_alike(value: JsonValue) -> JsonValue:
    """The same with look-alike letters, in its keys and texts."""
    match value:
        case dict():
            return {str(look_alike(key)): look_alike(each) for key, each in value.items()}
        case list():
            return [look_alike(each) for each in value]
        case str():
            return value.translate({ord(each): chr(other) for other, each in SEEN.items()})
        case _:
            return value


SEEN = {other: chr(each) for other, each in LOOK_ALIKES.items()}


@pytest.mark.parametrize("name", sorted(FORMS.keys() - PACKED))
def test_look_alikes_hide_nothing(name: str) -> None:
    assert refused(look_alike(FORMS[name]("payments"))) is not None


@pytest.mark.parametrize(
    "key",
    [
        "s\u0435rvice",
        "\u0430\u0440\u0440",
        "servi\u03f2e",
        "\ua731\u1d07\u0280\u1d20\u026a\u1d04\u1d07",
        "serv\u0131ce",
        "\u0405ERVICE",
        "\u0501eployment",
        "s\u0435rvice\u039dame",
    ],
)
def test_a_key_of_look_alikes_is_the_key(key: str) -> None:
    assert refused({key: "payments"}) is not None
    assert refused({"q": f"level=error {key}=payments"}) is not None
    assert refused({key: "checkout", "q": f"{key}=checkout"}) is None


@given(
    form=st.sampled_from(list(FORMS.values())),
    wrap=st.lists(st.sampled_from(["list", "object", "text key"]), max_size=40),
)
def test_nesting_hides_no_product(form: Form, wrap: list[str]) -> None:
    value = form("payments")
    for each in wrap:
        value = [None, value] if each == "list" else {f"{each}\u2028": value, "limit": 2**64}
    assert "payments" in set(named_products({"nested": value}))


def test_a_thousand_brackets_are_read() -> None:
    value: JsonValue = {"service": "payments"}
    for _ in range(1500):
        value = [value]
    assert list(named_products(value)) == ["payments"]


def test_a_wildcard_next_to_a_permitted_product_is_refused() -> None:
    class Named(ToolInput):
        service: str = ""
        apps: list[str] = []  # noqa: RUF012 - pydantic copies it

    named = contract(input=Named, products=usual_scope(Named.model_fields))
    arguments = parsed_arguments(named, '{"service": "checkout", "apps": ["*"]}')

    assert refusal(named.products, arguments, INSIDE) is not None


@pytest.mark.parametrize(
    "unit",
    [
        "service ",
        "--service ",
        "/* ",
        "'a' = ",
        '{"a":',
        "service in (",
        "%25",
        "lower(app",
        "(s:Service ",
        "kubectl x ",
        "pod=a-",
        "a-bcdfgh-bcdfg ",
        "H4sI",
        "&#61;",
        "\\u0061",
        "[app]\n",
        "app,b\n",
        "has('app',",
        "(app,",
        "(app) = (",
        "(a) = ('b'), ",
        "values ('a'), ",
        "app as a ",
        "('app', 'a",
        "&key=app&value=",
        "(app) in ",
        "(app , ",
        "app as a1 b",
        "service(",
        "svc/",
        "\u0455ervice ",
    ],
)
def test_time_grows_linearly_with_the_text(unit: str) -> None:
    def took(chars: int) -> float:
        started = time.process_time()
        list(named_products({"query": unit * (chars // len(unit))}))
        return time.process_time() - started

    small = min(took(5_000) for _ in range(3))

    assert min(took(50_000) for _ in range(3)) < 40 * small + 0.05
