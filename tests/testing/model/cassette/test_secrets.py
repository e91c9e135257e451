"""What is secret goes, whatever its shape; what is not stays."""

from __future__ import annotations

import base64

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


def test_a_dummy_key_hides_no_words() -> None:
    scrubber = Scrubber()
    scrubber.learn({"authorization": "Bearer scripted"}, "http://host/")
    assert scrubber.data({"a scripted model": ["scripted", 1, None]}) == {"a scripted model": ["scripted", 1, None]}
