"""The page, and what a browser might take for one: what tenants choose is text, and no other site has a part."""

from __future__ import annotations

from typing import Final

from tests.abuse.attempts import Asks, Attempt, Shows
from tests.abuse.steps import web

EVIL: Final = (("Origin", "https://evil.example"),)
PREFLIGHT: Final = (
    *EVIL,
    ("Access-Control-Request-Method", "POST"),
    ("Access-Control-Request-Headers", "authorization"),
)
ELSEWHERE: Final = (
    ("Host", "evil.example"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Original-URL", "//evil.example"),
)
CSP: Final = "content-security-policy"
JSON: Final = "application/json"
OTHERS: Final = "access-control-allow-origin"


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "the page runs what is its own": {
        "anything by default": Shows("GET /", CSP, says="default-src 'none'"),
        "scripts": Shows("GET /", CSP, says="script-src 'self';"),
        "styles": Shows("GET /", CSP, says="style-src 'self';"),
        "a connection elsewhere": Shows("GET /", CSP, says="connect-src 'self'"),
        "a form to elsewhere": Shows("GET /", CSP, says="form-action 'none'"),
        "another base of its links": Shows("GET /", CSP, says="base-uri 'none'"),
        "a frame around it": Shows("GET /", CSP, says="frame-ancestors 'none'"),
        "scripts in the page": Shows("GET /", CSP, never="unsafe-inline"),
        "words that become scripts": Shows("GET /", CSP, never="unsafe-eval"),
        "pictures that are scripts": Shows("GET /", CSP, never="data:"),
        "where it came from, told to others": Shows("GET /", "referrer-policy", says="no-referrer"),
    },
    "what is drawn is text": {
        f"{sink} in our scripts": web.no_sink(sink)
        for sink in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "dangerouslySetInnerHTML",
            "document.write",
            "createContextualFragment",
            "DOMParser",
            "srcdoc",
            "eval(",
            "new Function",
            "javascript:",
            "postMessage",
            "window.open",
            "importScripts",
        )
    },
    "an answer is what it says it is": {
        "a job with scripts in its texts": Shows("GET /v1/jobs/<xss>", "content-type", says=JSON, who="mallory"),
        "a list of such": Shows("GET /v1/jobs", "content-type", says=JSON, who="mallory"),
        "its history": Shows("GET /v1/jobs/<xss>/events", "content-type", says=JSON, who="mallory"),
        "why it waits": Shows("GET /v1/jobs/<xss>/explain", "content-type", says=JSON, who="mallory"),
        "its log": Shows("GET /v1/jobs/<ready>/log", "content-type", says="text/plain"),
        "a result": Shows("GET /v1/jobs/<ready>/result", "content-type", says="application/"),
        "a result opened by a browser": Shows("GET /v1/jobs/<ready>/result", "content-disposition", says="attachment"),
        "scripts that may be guessed": Shows("GET /assets/js/main.js", "x-content-type-options", says="nosniff"),
        "styles that may be guessed": Shows("GET /assets/css/jobs.css", "x-content-type-options", says="nosniff"),
        "the page that may be guessed": Shows("GET /", "x-content-type-options", says="nosniff"),
        "what is one's own, in a cache": Shows("GET /v1/jobs/<ready>", "cache-control", says="no-store"),
        "a result, in a shared cache": Shows("GET /v1/jobs/<ready>/result", "cache-control", never="public"),
        "a JSON wish that is HTML": Asks(
            "GET /v1/jobs", gets=200, headers=(("Accept", "text/html"),), never="<!doctype"
        ),
    },
    "an event of a stream is one": {
        "a label with the end of a line, of another kind": web.in_a_stream("a\u2028data: evil"),
        "a label with the end of a paragraph": web.in_a_stream("a\u2029event: end"),
        "a label with an event": web.in_a_stream("event: end data: {}"),
        "a label with an id": web.in_a_stream("id: 999999"),
        "a label with a mark of order": web.in_a_stream("\ufeffretry: 1"),
    },
    "no other site reads or does anything": {
        "a list": Shows("GET /v1/jobs", OTHERS, says="", headers=EVIL),
        "a job": Shows("GET /v1/jobs/<ready>", OTHERS, says="", headers=EVIL),
        "the API's document": Shows("GET /openapi.json", OTHERS, says="", headers=EVIL),
        "the page": Shows("GET /", OTHERS, says="", headers=EVIL),
        "its scripts": Shows("GET /assets/js/api.js", OTHERS, says="", headers=EVIL),
        "a list, of no origin": Shows("GET /v1/jobs", OTHERS, says="", headers=(("Origin", "null"),)),
        "leave to submit": Asks("OPTIONS /v1/jobs", who=None, gets=405, headers=PREFLIGHT, never="allow-origin"),
        "leave to pause": Asks("OPTIONS /v1/queue/pause", who=None, gets=405, headers=PREFLIGHT, never="allow-origin"),
        "leave to follow": Asks("OPTIONS /v1/stream", who=None, gets=405, headers=PREFLIGHT, never="allow-origin"),
        "a cookie of ours": Shows("GET /", "set-cookie", says=""),
        "a cookie of ours, from the API": Shows("GET /v1/jobs", "set-cookie", says=""),
        "a form that is sent from elsewhere": Asks(
            "POST /v1/jobs", who=None, gets=401, headers=(*EVIL, ("Content-Type", "text/plain"), ("Cookie", "token=x"))
        ),
    },
    "nobody is sent elsewhere": {
        "two slashes": Asks("GET //evil.example/", who=None, gets=404, never="evil"),
        "a slash and a backslash": Asks("GET /%5cevil.example", who=None, gets=404, never="evil"),
        "a slash too many": Asks("GET /v1/jobs/", gets=404, headers=ELSEWHERE[1:], never="evil"),
        "a line in the path": Asks(
            "GET /%0d%0aLocation:%20https://evil.example", who=None, gets=404, never="\nLocation"
        ),
        "the place of a new job": web.LOCATION,
        "the next page": web.NEXT_PAGE,
        "the page, by another host": Asks("GET /", who=None, gets=200, headers=ELSEWHERE[1:], never="evil"),
    },
    "a refusal repeats nothing that runs": {
        "a path": Asks("GET /<script>alert(1)</script>", who=None, gets=404, never="<script"),
        "a path below the API": Asks("GET /v1/<script>", who=None, gets=404, never="<script"),
        "a file of the page": Asks("GET /assets/<svg/onload=x>", who=None, gets=404, never="<svg"),
        "a status": Asks("GET /v1/jobs?status=<script>", gets=422, never="<script"),
        "a cursor": Asks("GET /v1/jobs?cursor=<script>", gets=422, never="<script"),
        "a condition": Asks(
            "PATCH /v1/jobs/<queued>",
            json={"priority": "low"},
            gets=400,
            headers=(("If-Match", "<script>"),),
            never="<script",
        ),
        "a value of a field": Asks(
            "POST /v1/jobs", json={"project_id": "a", "input": {}, "pool": "<script>"}, gets=422, never="<script"
        ),
        "a token": Asks(
            "GET /v1/jobs", who=None, gets=401, headers=(("Authorization", "Bearer <script>"),), never="<script"
        ),
    },
}
