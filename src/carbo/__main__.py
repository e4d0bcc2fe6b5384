"""`python -m carbo` is the `carbo` command."""

import sys

from carbo.cli import main

if __name__ == "__main__":
    sys.exit(main())
