"""``python -m fedlink``: the ``fedlink`` command."""

import sys

from ._command import main

sys.exit(main())
