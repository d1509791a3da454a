"""How the `kerf` command starts, and ``python -m kerf``."""

from __future__ import annotations

_INTERRUPTED = 130  # as in kerf.adapters.cli.boundary, which is not loaded yet


def run() -> int:
    """Run the command line and return its exit code. Ctrl-C ends it without a traceback also while it is loaded."""
    try:
        import signal

        handler = signal.getsignal(signal.SIGINT)
        if handler is signal.default_int_handler:  # or else it is ignored, as by what a script starts with "&"
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # msgspec crashes where an exception ends its loading
        from kerf.adapters.cli.main import main

        signal.signal(signal.SIGINT, handler)
        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(run())
