"""`python -m pallas_gen`: the same as `pallas-gen`."""

from pallas_gen.cli import main

if __name__ == "__main__":
    main()
