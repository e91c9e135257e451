"""What FastAPI and others import, and a registry that watches does not use: imported when it is used.

Most of it describes the API (`/openapi.json`), which hardly anybody asks for. FastAPI looks for models of pydantic's
first version by `isinstance`, and has all of it imported for that. With another version look at the uses anew:
tests/agent_runtime/test_unused_imports.py compares the versions with the lock.
"""

from __future__ import annotations

from pallas_service.late_imports import UVICORN, Distribution, Late, StandardLibrary


def _late(module: str, names: str = "", importers: str = "") -> Late:
    return Late(module, frozenset(names.split()), tuple(importers.split()))


DISTRIBUTIONS = (
    Distribution(
        "fastapi",
        "0.165.0",
        (
            _late("fastapi.encoders", "jsonable_encoder", "fastapi."),
            _late(
                "fastapi.openapi.docs",
                "get_redoc_html get_swagger_ui_html get_swagger_ui_oauth2_redirect_html",
                "fastapi.applications",
            ),
            _late("fastapi.openapi.models", "Example", "fastapi.params fastapi.param_functions"),
            _late("fastapi.openapi.utils", "get_openapi", "fastapi.applications"),
            _late("fastapi.security"),
            _late("fastapi.security.base", "SecurityBase", "fastapi.dependencies."),
            _late("fastapi.security.oauth2", "SecurityScopes", "fastapi.dependencies."),
        ),
    ),
    Distribution(
        "opentelemetry_api",
        "1.45.2",
        (
            _late("opentelemetry._logs", "Logger LoggerProvider SeverityNumber", "fastapi.telemetry."),
            _late("opentelemetry.metrics", "Histogram MeterProvider UpDownCounter", "fastapi.telemetry."),
            _late("opentelemetry.propagate"),
            _late("opentelemetry.trace", "Span SpanKind StatusCode Tracer TracerProvider", "fastapi.telemetry."),
        ),
    ),
    Distribution("pydantic", "2.14.0", (_late("pydantic.v1", "BaseModel", "fastapi._compat.shared"),)),
    UVICORN,
)
STANDARD_LIBRARY = StandardLibrary("python", "3.13", (_late("difflib"), _late("html"), _late("logging.config")))
"""Not hashlib and hmac, as in an agent: loaded later they would find OpenSSL's digests."""
ALL = (*DISTRIBUTIONS, STANDARD_LIBRARY)
OPTIONAL = ("_hashlib", "email_validator", "greenlet", "python_multipart", "rich")
"""Modules that others use where they are there. OpenSSL's digests take 1.8 MiB when they are first asked for;
Python's own do for the few that a registry makes. Forms, addresses of mail and tracebacks in colour it has none."""
