"""`python -m app` is the command `wattridge`."""

import os
import sys

if __name__ == "__main__":
    # -m puts the working directory first. Unless this package lies there, nothing is to be imported from it.
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != os.path.realpath(here):
        del sys.path[0]

    from app.cli import main

    raise SystemExit(main())
