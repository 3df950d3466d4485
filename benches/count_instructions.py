"""Count the instructions of each kernel on fixed inputs, with valgrind's callgrind.

Counts do not depend on how busy the machine is, so two revisions can be compared to the percent::

    python benches/count_instructions.py --write before.json    # at the old revision
    python benches/count_instructions.py --against before.json  # at the new one
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = (
    "project_l1",
    "clipped_gradient f32",
    "clipped_gradient f64",
    "clipped_gradient csr",
    "relative_gradient f32",
    "relative_gradient f64",
    "settled_sums",
    "select_arms",
    "laplace",
    "peel",
    "niht",
    "second_moments",
)


def build() -> Path:
    """Build the program that runs one kernel, as optimised as the wheel is, and return its path."""
    command = ["cargo", "build", "--release", "-p", "fliphat-core", "--example", "count_instructions"]
    # Debug information only tells callgrind where the counted function starts; it changes no instruction.
    done = subprocess.run(
        [*command, "--config", "profile.release.debug=1", "--message-format=json"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
    )
    built = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    return Path([path for path in built if path][-1])


def count(program: Path, kernel: str) -> int:
    """Return the instructions that the kernel executes."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                "--toggle-collect=*count_instructions*counted*",
                f"--callgrind-out-file={folder}/out",
                program,
                kernel,
            ],
            check=True,
            stderr=subprocess.PIPE,
            text=True,
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"valgrind printed no count:\n{done.stderr}")
    return int(found[1])


def main() -> int:
    """Print the table; return 1 if a kernel takes 2 % more or less than before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path, help="file to keep the counts in")
    parser.add_argument("--against", type=Path, help="file with the counts to compare with")
    arguments = parser.parse_args()
    program = build()
    counts = {kernel: count(program, kernel) for kernel in KERNELS}
    before = json.loads(arguments.against.read_text()) if arguments.against else counts
    worst = 0.0
    for kernel, now in counts.items():
        change = now / before.get(kernel, now) - 1
        worst = max(worst, abs(change))
        print(f"{kernel:24} {before.get(kernel, now):14,} {now:14,} {change:+8.2%}")
    if arguments.write:
        arguments.write.write_text(json.dumps(counts, indent=1) + "\n")
    return int(worst > 0.02)


if __name__ == "__main__":
    sys.exit(main())
