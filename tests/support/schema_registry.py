"""A schema registry on loopback: what Confluent's clients ask of one, and the ways it fails."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import unquote, urlsplit

Fault = Literal["", "refuses", "breaks", "is slow", "proxy"]


class SchemaRegistry:
    """Serves until `close`: `POST /subjects/S/versions` registers, `POST /subjects/S` looks up, and
    `GET /schemas/ids/N` and `GET /subjects/S/versions/latest` read."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        """The one of id N is the N-th, from 1."""
        self.subjects: dict[str, list[int]] = {}
        self.requests: Counter[str] = Counter()
        self.fault: Fault = ""
        """refuses: 401; breaks: 500; is slow: no answer before the end; proxy: 404 without a code."""
        self._end = threading.Event()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def _answer(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = registry.answer(method, unquote(urlsplit(self.path).path), body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nobody listens there any more. May be called more than once."""
        self._end.set()
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Status and content."""
        self.requests[f"{method} {path}"] += 1
        if self.fault == "refuses":
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        if self.fault == "breaks":
            return 500, {"error_code": 50001, "message": "Error in the backend data store"}
        if self.fault == "proxy":
            return 404, b"<html>no such page</html>"
        if self.fault == "is slow":
            self._end.wait()
        match method, path.split("/")[1:]:
            case "POST", ["subjects", subject, "versions"]:
                return 200, {"id": self._register(subject, json.loads(body))}
            case "POST", ["subjects", subject]:
                given = json.loads(body)
                if subject not in self.subjects:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                if given not in self.schemas:
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self._version(subject, self.schemas.index(given) + 1)
            case "GET", ["schemas", "ids", number]:
                if not 0 < int(number) <= len(self.schemas):
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self.schemas[int(number) - 1]
            case "GET", ["subjects", subject, "versions", "latest"] if subject in self.subjects:
                return 200, self._version(subject, self.subjects[subject][-1])
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _register(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _version(self, subject: str, number: int) -> dict[str, Any]:
        version = self.subjects[subject].index(number) + 1
        return self.schemas[number - 1] | {"subject": subject, "version": version, "id": number}
