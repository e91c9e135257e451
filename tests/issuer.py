"""An issuer of tokens: real keys, real signatures, its key set on a local port."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass
class Issuer:
    """Signs tokens with its newest key; `asked` counts the looks at its key set, `broken` answers them with 500."""

    url: str = ""
    asked: int = 0
    broken: bool = False
    keys: dict[str, ec.EllipticCurvePrivateKey] = field(default_factory=dict)

    def rotate(self) -> None:
        """A new key in the place of all others."""
        self.keys = {f"key-{time.monotonic_ns()}": ec.generate_private_key(ec.SECP256R1())}

    def jwks(self) -> dict[str, Any]:
        return {"keys": [public(key, kid) for kid, key in self.keys.items()]}

    def token(self, audience: str | list[str], subject: str = "alice", **claims: Any) -> str:
        """A token that is good for a minute; a claim that is None is left out."""
        ((kid, key),) = self.keys.items()
        times = {"iat": int(time.time()), "exp": int(time.time()) + 60}
        said = {"iss": self.url, "sub": subject, "aud": audience, **times, **claims}
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, key, algorithm="ES256", headers={"kid": kid})


def public(key: ec.EllipticCurvePrivateKey, kid: str) -> dict[str, Any]:
    data: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**data, "kid": kid, "use": "sig", "alg": "ES256"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    made.rotate()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            made.asked += 1
            body = json.dumps(made.jwks()).encode()
            self.send_response(500 if made.broken else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        server.shutdown()
        thread.join()
