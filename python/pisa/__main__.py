"""`python -m pisa info | bench | demo`: exit status 0, 1 where something outside is missing or
wrong, 2 for a bad argument."""

import argparse
import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any


def gather() -> dict[str, Any]:
    """What `info` prints. Raises RuntimeError without a library."""
    from . import __version__
    from ._kernels import explain_spec
    from ._library import FORWARD, find_library, library
    from ._params import Params
    from ._threads import get_num_threads

    lib = library()
    cuda = gather_cuda()
    params = Params()
    cpu = explain_spec((FORWARD, 0, "f32", 1, 1, 64, 64, params.topk, params, ""))
    folder = lib.pisaGetDefaultCacheDirectory().decode()
    objects = [f.stat().st_size for f in Path(folder).glob("*.o")] if folder else []
    packages: dict[str, str | None] = {}
    for name in ("numpy", "torch", "transformers", "matplotlib"):
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "pisa": __version__,
        "build": lib.pisaGetBuildId().decode(),
        "llvm": lib.pisaGetLlvmVersion().decode(),
        "library": str(find_library()),
        "python": sys.version.split()[0],
        "cpu": cpu["cpu"],
        "vector_bits": cpu["vector_bits"],
        "threads": get_num_threads(),
        "cuda": cuda,
        "cache": folder or None,
        "cached_kernels": len(objects),
        "cached_bytes": sum(objects),
        "packages": packages,
    }


def gather_cuda() -> dict[str, Any]:
    """What there is of CUDA: its devices, the driver's version, ptxas; or why there is none."""
    from ._cuda import device, device_count
    from ._library import library

    found: dict[str, Any] = {
        "driver": None,
        "devices": [],
        "reason": None,
        "ptxas": library().pisaFindPtxas().decode() or None,
    }
    try:
        for ordinal in range(device_count()):
            about = device(ordinal)
            version = about.driver_version
            found["driver"] = f"{version // 1000}.{version % 1000 // 10}"
            capability = about.compute_capability
            found["devices"].append(
                {
                    "name": about.name.decode(),
                    "compute_capability": f"{capability // 10}.{capability % 10}",
                    "chip": about.chip.decode() or None,
                    "multiprocessors": about.multiprocessors,
                    "max_shared_bytes": about.max_shared_bytes,
                }
            )
        if not found["devices"]:
            found["reason"] = "no CUDA device"
    except RuntimeError as error:
        found["reason"] = str(error)
    return found


def cuda_lines(found: dict[str, Any]) -> dict[str, str]:
    """What `gather_cuda` gives, a line each."""
    lines = {"cuda": f"driver {found['driver']}" if found["driver"] else f"none: {found['reason']}"}
    for i, about in enumerate(found["devices"]):
        use = f"code for {about['chip']}" if about["chip"] else "too old: 8.0 or later is needed"
        lines[f"device {i}"] = (
            f"{about['name']}, compute capability {about['compute_capability']},"
            f" {about['multiprocessors']} multiprocessors; {use}"
        )
    if found["devices"] and found["reason"]:
        lines["other devices"] = found["reason"]
    lines["ptxas"] = found["ptxas"] or "none: the driver assembles"
    return lines


def info(arguments: argparse.Namespace) -> int:
    """Prints versions, the CPU, CUDA devices, and where kernels are kept."""
    found = gather()
    if arguments.json:
        print(json.dumps(found, indent=1))
        return 0
    packages = found.pop("packages")
    lines = cuda_lines(found.pop("cuda"))
    if found["cache"] is None:
        found["cache"] = "none"
    for name, value in {**found, **lines, **packages}.items():
        print(f"{name:15} {'not installed' if value is None else value}")
    return 0


def bench(arguments: argparse.Namespace) -> int:
    """Times attention against dense attention."""
    from . import bench as benchmark

    return benchmark.run(arguments)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python -m pisa", description="Pyramid Top-K Sparse Attention"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="info | bench | demo")
    about = commands.add_parser("info", help="versions, CPU, threads, CUDA, cache")
    about.add_argument("--json", action="store_true", help="as JSON")
    about.set_defaults(run=info)
    times = commands.add_parser("bench", help="attention against dense attention")
    from .bench import add_arguments

    add_arguments(times)
    times.set_defaults(run=bench)
    commands.add_parser("demo", help="a language model with it: `demo --help`", add_help=False)
    return top


def main(argv: list[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["demo"]:
        from .demo import main as demo

        return demo(given[1:])
    arguments = parser().parse_args(given)
    try:
        return int(arguments.run(arguments))
    except (ValueError, TypeError) as error:
        print(f"pisa: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, NotImplementedError, ImportError, OSError) as error:
        print(f"pisa: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
