"""Literal secrets are told from what only looks like them."""

from __future__ import annotations

import pytest

from pallas_contract.validate import secret_shapes

SHAPES = [
    "sk-proj-a8Df3kLm9QwErTyUiOp",
    "sk-ant-api03-Zx8CvBnM1234567890",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "glpat-Kx9_zLmNoPqRsTuVwXyZ",
    "xoxb-2112345-AbCdEfGhIjKl",
    "AKIAQ3EGRT7ZBVLKMN2P",
    "hf_QwErTyUiOpAsDfGhJkLz",
    "AIzaSyD3lMnOpQrStUvWxYz0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", ["api_key", "apiKey", "X-Api-Key", "GITHUB_TOKEN", "Authorization", "DB_PASSWORD"])
def test_the_key_of_a_secret_in_any_spelling(key: str) -> None:
    assert secret_shapes.is_secret_key(key)


@pytest.mark.parametrize("key", ["AWS_SECRET_ACCESS_KEY", "clientSecret", "OPENAI_API_KEY_2", "Cookie", "--auth-token"])
def test_the_key_of_a_secret_with_more_words(key: str) -> None:
    assert secret_shapes.is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "max_tokens",
        "token_url",
        "tokenizer",
        "key",
        "primary_key",
        "monkey",
        "PATH",
        "password_file",
        "costPerToken",
        "1",
    ],
)
def test_the_key_of_something_else(key: str) -> None:
    assert not secret_shapes.is_secret_key(key)


@pytest.mark.parametrize(
    "text", ["hunter2", "Bearer abcd1234", "${KEY:hunter2}", "Basic dXNlcjpwYXNz", "sup3r-s3cret", "a b c d 9"]
)
def test_a_value_that_is_a_secret(text: str) -> None:
    assert secret_shapes.is_literal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "${KEY}",
        "${KEY:}",
        "${KEY:not-set}",
        "${KEY:-no-key-needed}",
        "Bearer ${KEY}",
        "org-${ORG}-${KEY}",
        "$KEY",
        "<your key>",
        "your-api-key",
        "sk-your-key-here",
        "sk-...",
        "sk-xxxx",
        "...",
        "changeme",
        "{{ token }}",
        "EMPTY",
        "ollama",
        "/run/secrets/KEY",
        "./secrets/key.txt",
        "OPENAI_API_KEY",
        "not-needed",
        "%KEY%",
    ],
)
def test_a_value_that_is_none(text: str) -> None:
    assert not secret_shapes.is_literal(text)


@pytest.mark.parametrize("text", SHAPES)
def test_a_shape_counts_under_any_key_and_within_a_text(text: str) -> None:
    assert secret_shapes.known_shape(text)
    assert secret_shapes.has_secret("description", f"use {text} for it")


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn is a library",
        "task-oriented-programming-language1",
        "sk-xxxxxxxxxxxxxxxxxxxxxx",
        "AKIAIOSFODNN7EXAMPLE",
        "sk-your-openai-key-goes-here1",
        "sk-00000000000000000000",
        "the prefix ghp_ is GitHub's",
        "BEGIN PUBLIC KEY",
        "hf_embedding_model_name = load()",
        "npm_config_registry_url2",
        "see pypi-attestation-models",
    ],
)
def test_a_text_that_only_reminds_of_one(text: str) -> None:
    assert not secret_shapes.known_shape(text)


@pytest.mark.parametrize("text", ["Basic calculator", "Bearer authentication.", "basic self-service", "Basic research"])
def test_a_description_that_begins_like_a_header(text: str) -> None:
    assert not secret_shapes.has_secret("description", text)


@pytest.mark.parametrize("text", ["Basic dXNlcjpwYXNz", "bearer abcd1234", "Bearer AbCdEfGhIj"])
def test_a_header_under_another_key(text: str) -> None:
    assert secret_shapes.has_secret("value", text)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:p4ss@host/",
        "https://tok3n@host/mcp",
        "postgres://user:p4ss@db/x",
        "https://h/mcp?api_key=abc1",
        "https://h/mcp?exaApiKey=abc1",
        "https://h/?key=abc1&page=1",
        "https://user:${P:p4ss}@host",
    ],
)
def test_a_url_with_a_secret(url: str) -> None:
    assert secret_shapes.in_url(url)
    assert secret_shapes.has_secret("url", url)


@pytest.mark.parametrize(
    "url",
    [
        "http://host:8080/mcp",
        "http://user:${P}@host",
        "https://${U}:${P}@h",
        "ssh://git@github.com/x",
        "redis://u@h",
        "https://h/?key=${K}&page=1",
        "http://[::1",
        "http://user:@host",
        "user:pass",
        "https://git@host/x",
    ],
)
def test_a_url_without_one(url: str) -> None:
    assert not secret_shapes.in_url(url)


def test_arguments_by_option_pair_header_and_shape() -> None:
    arguments = ["--api-key", "abcd1", "--token=zzzz9", "-H", "Authorization: Bearer abcd1", "TOKEN=abcd1", SHAPES[0]]
    assert list(secret_shapes.in_arguments(arguments)) == [
        (2, "token"),
        (4, "Authorization"),
        (5, "TOKEN"),
        (6, ""),
        (1, "--api-key"),
    ]


def test_arguments_that_refer_or_have_another_meaning() -> None:
    arguments = [
        "--token",
        "${T}",
        "--api-key=${K}",
        "--max-tokens",
        "500",
        "--token-file",
        "x",
        "--password",
        "--quiet",
    ]
    assert list(secret_shapes.in_arguments(arguments)) == []


def test_words_of_a_command_line_with_open_quotes() -> None:
    assert secret_shapes.words("x --token 'a b'") == ["x", "--token", "a b"]
    assert secret_shapes.words("x --token 'a b") == ["x", "--token", "'a", "b"]
