"""All targets. One more is a module or folder beside this one, and its row here."""

from __future__ import annotations

from pallas_gen.targets import image, observability
from pallas_gen.targets.base import Target
from pallas_gen.targets.compose import target as compose
from pallas_gen.targets.helm import target as helm

TARGETS: tuple[Target, ...] = (compose.TARGET, helm.TARGET, image.TARGET, observability.TARGET)
