"""``python -m maxent`` is the command ``maxent``."""

import sys

from maxent.cli import main

if __name__ == "__main__":
    sys.exit(main())
