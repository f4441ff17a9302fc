"""What a browser would be given, and what its page is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.abuse.attempts import HELD, Tries
from tests.abuse.scene import JSON, Scene
from tests.abuse.steps.tenancy import WORK

SCRIPTS: Final = Path(__file__).parents[3] / "services" / "notifier" / "dashboard" / "assets" / "js"
FIELDS: Final = ("event: ", "data: ", "id: ", "retry: ", ":")
ELSEWHERE: Final = (("X-Forwarded-Host", "evil.example"), ("Forwarded", "host=evil.example"))


async def _no_sink(scene: Scene, sink: str) -> str:
    """Of all that a page could turn texts into markup or scripts by, ours has nothing."""
    served = await scene.ask(None, "GET /assets/js/main.js")
    texts = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS.rglob("*.js")}
    assert served.text == texts["main.js"]
    return ", ".join(name for name, text in texts.items() if sink in text)


async def _in_a_stream(scene: Scene, text: str) -> str:
    """Each line of the stream is of a field, and what it tells is JSON in which the text stands as it was."""
    body = {"project_id": "a", "pipeline": "rehearsal", "input": WORK, "labels": {"t": text}}
    job = (await scene.ask("mallory", "POST /v1/jobs", json.dumps(body).encode(), JSON)).json()["id"]
    headers = {"Authorization": f"Bearer {scene.company.token('mallory')}"}
    said = ""
    async with scene.http.stream("GET", f"/v1/jobs/{job}/stream", headers=headers) as stream:
        async for piece in stream.aiter_text():
            said += piece
            if "event: snapshot" in said and said.endswith("\n\n"):
                break
    lines = [line for line in said.split("\n") if line]
    told = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    if odd := [line for line in lines if not line.startswith(FIELDS)]:
        return f"a line of its own: {odd[0][:100]}"
    return HELD if text in json.dumps(told, ensure_ascii=False) else "the label is another one"


async def _location(scene: Scene) -> str:
    body = json.dumps({"project_id": "a", "pipeline": "rehearsal", "input": WORK}).encode()
    answer = await scene.ask("mallory", "POST /v1/jobs", body, (*JSON, *ELSEWHERE))
    place = answer.headers.get("location", "")
    return HELD if place.startswith("/v1/jobs/") and "evil" not in str(answer.headers) else place


async def _next_page(scene: Scene) -> str:
    answer = await scene.ask("ann", "GET /v1/jobs?limit=1", None, ELSEWHERE)
    link = answer.headers.get("link", "")
    return HELD if link.startswith("</v1/jobs?") and "evil" not in link else link


def no_sink(sink: str) -> Tries:
    return Tries(_no_sink, (sink,))


def in_a_stream(text: str) -> Tries:
    return Tries(_in_a_stream, (text,))


LOCATION: Final = Tries(_location)
NEXT_PAGE: Final = Tries(_next_page)
