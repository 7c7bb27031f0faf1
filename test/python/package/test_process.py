"""Threads, forks, the cache on disk, and import."""

import os
import stat
import subprocess
import sys
import threading
import warnings

import numpy as np
import pisa
import pytest

CALL = """
import warnings
import numpy as np
import pisa
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    x = np.ones((1, 100, 1, 16), np.float32)
    out = pisa.attention(x, x, x, topk=4)
assert np.abs(out - 1).max() < 1e-6
from pisa._kernels import _kernels
print(next(iter(_kernels.values())).from_cache, *(str(w.message) for w in said), sep="\\n")
"""


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


def test_two_threads():
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((3, 1, 300 + 50 * i, 2, 32), np.float32) for i in range(4)]
    want = [pisa.attention(*x, topk=4) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(20):
            if not (pisa.attention(*inputs[i], topk=4) == want[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_first_calls_of_two_threads():
    """Both compile the same kernel at once, and two others."""
    x = np.ones((1, 70, 1, 8), np.float32)
    results, barrier = [], threading.Barrier(4)

    def work(topk):
        barrier.wait()
        results.append(pisa.attention(x, x, x, topk=topk, block_size=24))

    threads = [threading.Thread(target=work, args=(k,)) for k in (5, 5, 6, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.abs(r - 1).max() < 1e-6 for r in results)


def test_after_a_fork():
    """A child has none of its parent's threads."""
    code = """
import os, signal
import numpy as np
import pisa
pisa.set_num_threads(2)
x = np.ones((1, 300, 2, 16), np.float32)
want = pisa.attention(x, x, x)
child = os.fork()
if child == 0:
    signal.alarm(60)  # a hang ends here
    os._exit(0 if (pisa.attention(x, x, x) == want).all() and pisa.get_num_threads() == 2 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert (pisa.attention(x, x, x) == want).all()
"""
    assert python(code) == ["0"]


def test_the_cache_is_used(tmp_path):
    where = str(tmp_path / "new" / "cache")
    assert python(CALL, PISA_CACHE_DIR=where) == ["False"]
    assert len(os.listdir(where)) == 1
    assert python(CALL, PISA_CACHE_DIR=where) == ["True"]
    assert python(CALL, PISA_CACHE_DIR="") == ["False"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text", "header"])
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    where = str(tmp_path)
    python(CALL, PISA_CACHE_DIR=where)
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    made = {
        "cut": data[: len(data) // 2],
        "flip": data,
        "empty": b"",
        "text": b"hello",
        "header": data[:40],
    }[damage]
    file.write_bytes(made)
    first, warning = python(CALL, PISA_CACHE_DIR=where)
    assert first == "False" and "is damaged" in warning and str(file) in warning
    assert python(CALL, PISA_CACHE_DIR=where) == ["True"]


def test_a_file_that_others_can_write_is_not_run(tmp_path):
    python(CALL, PISA_CACHE_DIR=str(tmp_path))
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o666)
    first, warning = python(CALL, PISA_CACHE_DIR=str(tmp_path))
    assert first == "False" and "written by others" in warning


def test_a_cache_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    first, warning = python(CALL, PISA_CACHE_DIR=str(blocked / "cache"))
    assert first == "False" and "cannot be written" in warning and str(blocked) in warning


def test_processes_share_a_cache(tmp_path):
    environment = {**os.environ, "PISA_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CALL], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    outputs = [process.communicate()[0].split() for process in running]
    assert all(process.returncode == 0 for process in running)
    assert all(len(words) == 1 for words in outputs), outputs  # no warning
    assert python(CALL, PISA_CACHE_DIR=str(tmp_path)) == ["True"]
    assert len(os.listdir(tmp_path)) == 1  # and nothing left beside it


def test_import_brings_no_framework():
    code = "import sys, pisa; print(*sorted({'torch', 'numpy', 'matplotlib'} & set(sys.modules)))"
    assert python(code) == []


def test_a_library_that_is_not_there(tmp_path):
    code = """
import numpy as np, pisa
try:
    pisa.get_num_threads()
except RuntimeError as error:
    print(error)
"""
    (line,) = python(code, PISA_LIBRARY=str(tmp_path / "libpisa.so"))
    assert str(tmp_path) in line and "cannot be used" in line


def test_no_warnings_in_a_plain_call():
    x = np.ones((1, 20, 1, 8), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pisa.attention(x, x, x)
