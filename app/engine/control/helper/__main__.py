"""The way in: finds this project and pynvml without letting anything in their folders run by itself."""

from __future__ import annotations

import os
import sys


def _find_modules() -> None:
    """Both lie beside each other, or pynvml in the environment of this Python; after the standard library, always."""
    here = os.path.dirname(os.path.abspath(__file__))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    environment = os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "lib", version, "site-packages")
    sys.path.extend([os.path.abspath(os.path.join(here, *[os.pardir] * 4)), environment])


if __name__ == "__main__":
    _find_modules()
    from app.engine.control.helper.holding import main

    sys.exit(main(sys.argv[1:]))
