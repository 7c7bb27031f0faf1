"""The examples of the documents run, and print what they say."""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path

import pytest

pisa = pytest.importorskip("pisa")
ROOT = Path(__file__).resolve().parents[2]


def blocks(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_the_readme_prints_what_it_says():
    (code,) = blocks("README.md")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), {})
    (comment,) = re.findall(r"print\(.*\)\s+# (.*)$", code, re.M)
    assert said.getvalue().strip() == comment


def test_the_guide_to_attention_runs():
    pytest.importorskip("torch")
    code = blocks("docs/Python.md")[0]
    exec(compile(code.replace("8192", "300"), "docs/Python.md", "exec"), {})


@pytest.mark.parametrize("name", ["pisa", "pisa.compiler", "pisa.indices"])
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 and found.failed == 0
