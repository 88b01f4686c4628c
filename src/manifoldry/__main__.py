"""``python -m manifoldry``, the command."""

import sys

from manifoldry.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
