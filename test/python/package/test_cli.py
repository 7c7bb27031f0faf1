"""python -m pisa"""

import json
import os
import subprocess
import sys

import pisa
import pytest
from pisa.__main__ import main


def test_info(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert pisa.__version__ in text and "llvm" in text and "22." in text and "cuda" in text
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["threads"] == pisa.get_num_threads() and found["vector_bits"] in (128, 256, 512)
    assert found["build"].startswith(pisa.__version__ + "-")


def info_with(**environment):
    done = subprocess.run(
        [sys.executable, "-m", "pisa", "info", *environment.pop("arguments", ())],
        env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_info_without_a_driver():
    text = info_with(PISA_CUDA_DRIVER="/no/such/driver", PISA_PTXAS="/none")
    assert "cuda            none: no CUDA driver: /no/such/driver could not be loaded" in text
    assert "ptxas           none: the driver assembles" in text
    found = json.loads(info_with(PISA_CUDA_DRIVER="/no/such/driver", arguments=["--json"]))["cuda"]
    assert found["devices"] == [] and found["driver"] is None
    assert found["reason"].startswith("no CUDA driver")


@pytest.mark.skipif("PISA_FAKE_CUDA" not in os.environ, reason="PISA_FAKE_CUDA names no driver")
def test_info_of_devices():
    fake = {"PISA_CUDA_DRIVER": os.environ["PISA_FAKE_CUDA"], "PISA_FAKE_CUDA_CAPABILITY": "79"}
    text = info_with(**fake)
    assert "cuda            driver 13.0\n" in text
    assert "device 0        Fake GPU, compute capability 7.9, 132 multiprocessors; too old" in text
    assert "8.0, 132 multiprocessors; code for sm_80\n" in text
    found = json.loads(info_with(**fake, arguments=["--json"]))["cuda"]
    assert found["driver"] == "13.0" and found["reason"] is None
    assert [d["chip"] for d in found["devices"]] == [None, "sm_80"]
    found = json.loads(info_with(**fake, PISA_FAKE_CUDA_DEVICES="0", arguments=["--json"]))["cuda"]
    assert found["devices"] == [] and found["reason"] == "no CUDA device"


def test_bench(capsys, tmp_path):
    file = tmp_path / "numbers.json"
    before = pisa.get_num_threads()
    command = "bench --lengths 65,128 --heads 4 --kv-heads 2 --head-dim 16 --topk 3 --block-size 16"
    assert main([*command.split(), "--runs", "1", "--threads", "2", "--json", str(file)]) == 0
    table = capsys.readouterr().out
    assert "| 65 |" in table and "| 128 |" in table and "host time of a call" in table
    record = json.loads(file.read_text())
    assert [row["length"] for row in record["rows"]] == [65, 128]
    assert all(row["whole"] > 0 and row["dense, ours"] > 0 for row in record["rows"])
    assert record["whole_us"] > 0
    assert pisa.get_num_threads() == before


@pytest.mark.parametrize(
    "arguments,said",
    [
        ("bench --topk 1", "'topk'"),
        ("bench --dtype float64", "--dtype"),
        ("bench --runs 0", "--runs"),
        ("bench --lengths 0", "--lengths"),
        ("bench --threads -1", "--threads"),
        ("bench --json /nowhere/numbers.json", "--json"),
        ("bench --heads 3 --kv-heads 2", "Hq"),
    ],
)
def test_bad_arguments(arguments, said, capsys):
    before = pisa.get_num_threads()
    assert main(arguments.split()) == 2
    assert said in capsys.readouterr().err
    assert pisa.get_num_threads() == before


def test_argparse_refuses_the_rest(capsys):
    for arguments in ([], ["dance"], ["bench", "--lengths", "x"]):
        with pytest.raises(SystemExit) as status:
            main(arguments)
        assert status.value.code == 2


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "pisa", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "info" in done.stdout and "demo" in done.stdout
