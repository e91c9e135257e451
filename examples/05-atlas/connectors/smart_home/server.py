"""The server of devices: `python -m connectors.smart_home.server`. `switch_device` is to be confirmed by a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from connectors import accounts
from connectors.serving import Tool, run
from connectors.smart_home.home import PORTS, Home


def tools(environ: Mapping[str, str] = os.environ, timeout: float = 10.0, patience: float = 5.0) -> list[Tool]:
    """Return the tools for the broker at MQTT_URL, with MQTT_PASSWORD, and announcements under MQTT_DISCOVERY.

    `timeout` are the seconds that the broker may take for an answer, `patience` those for a device to do as it is told.

    Raises:
        Problem: a variable is not there, or wrong.
    """
    account = accounts.read("MQTT_URL", "MQTT_PASSWORD", PORTS, environ)
    home = Home(account, environ.get("MQTT_DISCOVERY") or "homeassistant", timeout=timeout, patience=patience)

    async def list_devices() -> dict[str, Any]:
        """List the lights, switches and sensors of the house with their last known states."""
        devices, left_out = await home.listed()
        return {"devices": devices} | ({"left_out": left_out} if left_out else {})

    async def switch_device(
        name: Annotated[str, Field(min_length=1, max_length=300)], state: Literal["on", "off"]
    ) -> dict[str, Any]:
        """Switch a light or a switch. A person confirms this."""
        return await home.switch(name, on=state == "on")

    return [list_devices, switch_device]


def main() -> int:
    """Serve on PALLAS_BIND."""
    return run("smart_home", tools)


if __name__ == "__main__":
    sys.exit(main())
