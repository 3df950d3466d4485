"""The command line: `fliphat demo`, `fliphat reproduce`, `fliphat audit` and `fliphat bench`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fliphat import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"fliphat: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fliphat",
        description="Private decisions on high-dimensional data.",
        epilog="example: fliphat demo",
    )
    parser.add_argument("--version", action="version", version=f"fliphat {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="see what it does, in a few seconds")
    demo.set_defaults(run=_demo)

    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and draw their figures",
        description="Regret of the private policy against time, dimension, sparsity, arms and more.",
        epilog="examples: fliphat reproduce all --quick   |   fliphat reproduce regret-vs-time --out figures",
    )
    reproduce.add_argument(
        "name", metavar="NAME", help="an experiment, or 'all' (a wrong name lists the right ones)"
    )
    reproduce.add_argument("--repeats", type=_positive, help="runs of each policy (default: as published)")
    reproduce.add_argument("--quick", action="store_true", help="few repeats and points, in seconds")
    reproduce.add_argument("--workers", type=_positive, help="processes (default: one a core)")
    reproduce.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, or 'local' for one made here")
    reproduce.add_argument(
        "--out", default="fliphat-results", metavar="DIR", help="where files go (%(default)s)"
    )
    reproduce.add_argument("--resume", action="store_true", help="keep the runs that DIR already has")
    reproduce.add_argument("--json", action="store_true", help="print results for a program to read")
    reproduce.set_defaults(run=_reproduce)

    audit = commands.add_parser(
        "audit",
        help="try to refute the privacy claims, from runs alone",
        description="Lower bounds on epsilon for every mechanism, and for broken ones that must be caught.",
        epilog="examples: fliphat audit --quick   |   fliphat audit --runs 10000000 --case niht --json",
    )
    size = audit.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="10^6 runs a case, under a minute (the default)")
    size.add_argument("--full", action="store_true", help="10^8 runs a case, hours")
    size.add_argument("--runs", type=_positive, help="runs a case")
    audit.add_argument("--case", help="only cases whose name contains this")
    audit.add_argument("--seed", type=int, help="repeatable noise (default: the noise people get)")
    audit.add_argument("--json", action="store_true", help="print findings for a program to read")
    audit.set_defaults(run=_audit)

    bench = commands.add_parser(
        "bench",
        help="race the kernels against NumPy on this machine",
        epilog="example: fliphat bench --repeats 20 --json > speed.json",
    )
    bench.add_argument("--repeats", type=_positive, default=10, help="rounds of each race (default: 10)")
    bench.add_argument("--json", action="store_true", help="print times in seconds for a program to read")
    bench.set_defaults(run=_bench)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _demo(_: argparse.Namespace) -> int:
    from fliphat._demo import run

    return run()


def _reproduce(chosen: argparse.Namespace) -> int:
    from pathlib import Path

    from fliphat.experiments.reproduce import reproduce

    return reproduce(
        chosen.name,
        out=Path(chosen.out),
        repeats=chosen.repeats,
        quick=chosen.quick,
        workers=chosen.workers,
        dask=chosen.dask,
        resume=chosen.resume,
        as_json=chosen.json,
    )


def _audit(chosen: argparse.Namespace) -> int:
    from fliphat._audit_command import FULL_RUNS, QUICK_RUNS, run

    runs = chosen.runs or (FULL_RUNS if chosen.full else QUICK_RUNS)
    return run(runs, only=chosen.case, seed=chosen.seed, as_json=chosen.json)


def _bench(chosen: argparse.Namespace) -> int:
    from fliphat._bench import run

    return run(chosen.repeats, as_json=chosen.json)
