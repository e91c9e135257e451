"""`pallas-gen`, also as `python -m pallas_gen`."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line (`pallas_gen.cli.main`)."""
    gc.set_threshold(200_000)  # looks for cycles are a twentieth of a short command, which leaves none
    from pallas_gen import cli  # noqa: PLC0415 - see above

    cli.main()


if __name__ == "__main__":
    main()
