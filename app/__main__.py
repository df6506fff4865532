"""`python -m app` is the command `wattridge`."""

from app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
