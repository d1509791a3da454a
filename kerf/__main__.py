"""Runs the command line: ``python -m kerf`` does what ``kerf`` does."""

from kerf.adapters.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
