"""Where the repository is: its files are named from here, wherever a test stands."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
