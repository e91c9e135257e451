"""Devices as they announce themselves on the broker: MQTT discovery as Home Assistant made it a custom.

zigbee2mqtt, Tasmota, ESPHome and others publish what they are under `homeassistant/KIND/.../config`, and keep it there.
Nothing of it is run: of templates only `{{ value_json.KEY }}` is understood.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

SWITCHED = ("light", "switch")
KINDS = (*SWITCHED, "binary_sensor", "sensor")
_SHORT = {
    "stat_t": "state_topic",
    "cmd_t": "command_topic",
    "pl_on": "payload_on",
    "pl_off": "payload_off",
    "stat_on": "state_on",
    "stat_off": "state_off",
    "val_tpl": "value_template",
    "unit_of_meas": "unit_of_measurement",
}
_KEY = re.compile(r"\{\{\s*value_json\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Device:
    """A device. `states` are its words for on and off, `key` where they stand in a state that is JSON."""

    name: str
    kind: str
    state_topic: str
    command_topic: str
    commands: tuple[str, str] = ("ON", "OFF")
    states: tuple[str, str] = ("ON", "OFF")
    key: str = ""
    unit: str = ""

    def state(self, payload: bytes) -> str:
        """Return what the device says: `on`, `off`, or its own words."""
        text = payload.decode("utf-8", "replace")
        if self.key:
            try:
                text = str(json.loads(text)[self.key])
            except (ValueError, LookupError, TypeError):
                return "unreadable"
        if self.kind != "sensor" and text in self.states:
            return "on" if text == self.states[0] else "off"
        return text[:100]


def announced(topic: str, payload: bytes, prefix: str) -> Device | str | None:
    """Return the device of an announcement, why it cannot be used, or None for a kind that is nothing for us."""
    parts = topic.removeprefix(f"{prefix}/").split("/")
    if parts[0] not in KINDS or parts[-1] != "config" or not payload:
        return None
    where = "/".join(parts[:-1])
    try:
        written = json.loads(payload)
        return _device(parts[0], parts[-2], written) if isinstance(written, dict) else f"{where} is no JSON object"
    except (ValueError, RecursionError) as error:
        return f"{where} cannot be used: {str(error)[:100]}"


def _device(kind: str, id_: str, written: dict[str, Any]) -> Device:
    plain = {_SHORT.get(key, key): value for key, value in written.items()}
    base = str(plain.get("~", ""))
    is_json = plain.get("schema") == "json"
    on, off = _text(plain, "payload_on", "ON"), _text(plain, "payload_off", "OFF")
    template = _text(plain, "value_template", "")
    key = _KEY.fullmatch(template.strip())
    if template and not key:
        raise ValueError("of templates only {{ value_json.KEY }} is understood")
    command = _topic(plain, "command_topic", base)
    if kind in SWITCHED and not command:
        raise ValueError("it has no command_topic")
    return Device(
        name=_text(plain, "name", id_) or id_,
        kind=kind,
        state_topic=_topic(plain, "state_topic", base),
        command_topic=command if kind in SWITCHED else "",
        commands=(json.dumps({"state": "ON"}), json.dumps({"state": "OFF"})) if is_json else (on, off),
        states=("ON", "OFF") if is_json else (_text(plain, "state_on", on), _text(plain, "state_off", off)),
        key="state" if is_json else key[1] if key else "",
        unit=_text(plain, "unit_of_measurement", ""),
    )


def _text(written: dict[str, Any], key: str, default: str) -> str:
    value = written.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) > 300:
        raise ValueError(f"{key} is no short text")
    return value


def _topic(written: dict[str, Any], key: str, base: str) -> str:
    topic = _text(written, key, "").removesuffix("~") if not base else _expanded(_text(written, key, ""), base)
    if any(character in topic for character in "+#\0"):
        raise ValueError(f"{key} has a wildcard")
    return topic


def _expanded(topic: str, base: str) -> str:
    if topic.startswith("~"):
        return base + topic[1:]
    return topic[:-1] + base if topic.endswith("~") else topic
