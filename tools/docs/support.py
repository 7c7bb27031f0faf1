"""What the scripts of this folder share."""

# Part of the pisa project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]


def fail(*messages: str) -> NoReturn:
    for message in messages:
        print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def run(command: Iterable[str | Path], text: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in command]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except OSError as error:
        fail(f"cannot run {command[0]}: {error.strerror}")


def output_of(command: Iterable[str | Path]) -> str:
    command = list(command)
    done = run(command)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def tidy(text: str) -> str:
    """No blanks at the end of a line, no two blank lines, one newline at the end."""
    lines: list[str] = []
    for line in map(str.rstrip, text.strip().splitlines()):
        if line or lines[-1]:
            lines.append(line)
    return "\n".join(lines) + "\n"


def write(files: dict[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def check(files: dict[Path, str], command: str) -> None:
    """Fails with the differences unless the files on disk hold these texts."""
    stale = []
    for path, text in files.items():
        name = str(path.relative_to(ROOT))
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            continue
        stale.append(name)
        sys.stdout.writelines(
            difflib.unified_diff(
                old.splitlines(keepends=True),
                text.splitlines(keepends=True),
                name,
                f"{name} (regenerated)",
            )
        )
    if stale:
        sys.stdout.flush()
        fail(f"{' and '.join(stale)} out of date; to update: {command}")
