"""Providers of a test: a real server on loopback that gives the answers it was told, one for each request.

429                 that status, with `Retry-After: 1` (any number is a status)
"Hello"             a chat completion in OpenAI's form that says so
{"any": "thing"}    this JSON
"""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

from pydantic import SecretStr

from headgate_pipeline.context import Endpoint
from headgate_pipeline.testing.record import PipelineRun, ProviderRequest

MODEL: Final = "test-model"
KEY: Final = "test-key"
NO_MORE: Final = "the test has no more answers for this provider"


@contextmanager
def providers_of(answers: Mapping[str, Sequence[Any]], told: PipelineRun) -> Generator[dict[str, Endpoint]]:
    """One server for each provider, as long as the block lasts."""
    with ExitStack() as held:
        yield {name: held.enter_context(_served(name, list(each), told)) for name, each in answers.items()}


@contextmanager
def _served(name: str, answers: list[Any], told: PipelineRun) -> Generator[Endpoint]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(name, answers, told))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", MODEL, SecretStr(KEY))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(name: str, answers: list[Any], told: PipelineRun) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(_read(self.rfile.read(int(self.headers.get("Content-Length") or 0))))

        def _answer(self, body: Any) -> None:
            told.requests.append(ProviderRequest(name, self.path, body))
            status, said = _said(answers.pop(0) if answers else 500, more=NO_MORE if not answers else "")
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            """Nothing: the test's output is the test's."""

    return Handler


def _said(answer: Any, *, more: str) -> tuple[int, Any]:
    match answer:
        case int():
            return answer, {"error": {"message": more or f"the test says {answer}"}}
        case str():
            message = {"role": "assistant", "content": answer}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            told = {"id": "test", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice]}
            return 200, told | {"usage": usage}
        case _:
            return 200, answer


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
