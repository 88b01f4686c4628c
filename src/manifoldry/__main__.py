"""``python -m manifoldry``, the command."""

import sys

from manifoldry.cli.main import main

sys.exit(main())
