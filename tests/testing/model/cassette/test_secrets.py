"""What is secret goes, whatever its shape; what is not stays."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from pallas_testing.model.cassette.secrets import Scrubber


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-Ab3dEf9hIjKl",
        "sk-ant-api03-xyz_123-abc",
        "sk-abcd********wxyz",
        "ghp_0123456789abcdefABCD",
        "AIzaSyA0123456789abcdefghijklm",
        "AKIAIOSFODNN7EXAMPLE",
        "hf_abcdefghijklmnop12",
        "xoxb-12345-abcdef",
        "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_the_shape_of_a_key_is_enough(secret: str) -> None:
    assert Scrubber().text(f"wrong key: {secret}, sorry") == "wrong key: <secret>, sorry"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("curl -H 'Authorization: Bearer abc123def456'", "curl -H 'Authorization: Bearer <secret>'"),
        ("https://u:p4ss@host/x", "https://<secret>@host/x"),
        ("https://host/x?a=1&api_key=k1&b=2", "https://host/x?a=1&api_key=<secret>&b=2"),
        ("https://host/x?X-Amz-Signature=0f", "https://host/x?X-Amz-Signature=<secret>"),
        ('{"password": "hunter2hunter2"}', '{"password": "<secret>"}'),
        (r"{\"password\": \"hunter2hunter2\"}", r"{\"password\": \"<secret>\"}"),
        ("a task, a token count: many, secret: none", "a task, a token count: many, secret: none"),
        ("the bearer of this letter", "the bearer of this letter"),
        ("ask-questions-before-you-shoot", "ask-questions-before-you-shoot"),
        ("https://host:8080/a@b?page=2", "https://host:8080/a@b?page=2"),
    ],
)
def test_where_it_stands_is_enough(text: str, clean: str) -> None:
    assert Scrubber().text(text) == clean


def test_what_was_sent_is_looked_for_everywhere_in_every_spelling() -> None:
    scrubber = Scrubber({"DB_PASSWORD": "correct+horse/1", "EDITOR": "vi-improved-9"})
    basic = base64.b64encode(b"admin:letmein-77").decode()
    headers = {"Authorization": f"Basic {basic}", "x-api-key": "plain_value_42", "user-agent": "tester/1.0-agent"}
    scrubber.learn(headers, "https://me:my-word-9@host/?token=query_value_7")
    for secret in ("letmein-77", "plain_value_42", "my-word-9", "query_value_7", "correct+horse/1", basic):
        assert scrubber.text(f"<{secret}>") == "<<secret>>"
    assert scrubber.text("correct%2Bhorse%2F1") == "<secret>"
    assert scrubber.text(base64.b64encode(b"plain_value_42").decode()) == "<secret>"
    assert scrubber.text("vi-improved-9 tester/1.0-agent") == "vi-improved-9 tester/1.0-agent"


@pytest.mark.parametrize(
    "secret", ["a\"b\\c/d&e<f>'g h+9\n", "zwölf-Ünï-😀-77", "plain_value_42", "\\\\host\\share\\1"]
)
def test_what_is_escaped_goes_too(secret: str) -> None:
    scrubber = Scrubber({"TOKEN": secret})
    once = [
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(secret)[1:-1].replace("/", "\\/"),
        "".join(f"\\u{ord(letter):04X}" if ord(letter) < 65536 else letter for letter in secret),
        quote(secret, safe=""),
        quote(secret, safe="").lower() if secret.islower() else quote(secret),
        quote_plus(secret),
        html.escape(secret),
        "".join(f"&#{ord(letter)};" for letter in secret),
        "".join(f"&#x{ord(letter):x};" for letter in secret),
        base64.b64encode(secret.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    ]
    twice = [json.dumps(text)[1:-1] for text in once] + [quote(text, safe="") for text in once[:6]]
    for text in (secret, *once, *twice):
        assert scrubber.text(f"<{text}>") == "<<secret>>", text
    deep = json.dumps(json.dumps(json.dumps({"k": secret})))
    assert scrubber.text(deep) == json.dumps(json.dumps(json.dumps({"k": "<secret>"})))


def test_a_short_one_goes_where_it_stands_alone_and_letters_where_they_are_no_word() -> None:
    scrubber = Scrubber(
        {"PIN_TOKEN": "a1b2", "API_KEY": "QwErTyUiOp", "SECRET": "abcdefghijklmnop", "OTHER_KEY": "1234"}
    )
    assert scrubber.text("a1b2, key=a1b2 and a1b2c3") == "<secret>, key=<secret> and a1b2c3"
    assert scrubber.text("xQwErTyUiOpx abcdefghijklmnop") == "x<secret>x <secret>"
    assert scrubber.text("1234 of them") == "1234 of them"


def test_a_dummy_key_hides_no_words() -> None:
    scrubber = Scrubber()
    scrubber.learn({"authorization": "Bearer scripted"}, "http://host/")
    assert scrubber.data({"a scripted model": ["scripted", 1, None]}) == {"a scripted model": ["scripted", 1, None]}
