"""The package passes the type checker."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_mypy():
    pytest.importorskip("mypy")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=/dev/null"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
