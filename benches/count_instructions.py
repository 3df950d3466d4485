"""Count the instructions of each kernel on fixed inputs, with valgrind's callgrind.

Counts do not depend on how busy the machine is, so two revisions can be compared to the percent.
`benches/instructions.json` has those of this revision; a slow test compares them::

    python benches/count_instructions.py            # beside the file
    python benches/count_instructions.py --write    # after a change that is meant

Valgrind knows no AVX-512: counted is the AVX2 path, which is the same on every machine that has it.
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
    "gaussian_release",
    "peel exponential",
    "peel laplace",
    "niht",
    "second_moments",
    "simulated rounds",
)

KEPT = Path(__file__).with_name("instructions.json")

#: A kernel may take this much more or less than in the file: another compiler moves counts, too.
BAND = 0.05

#: As the wheel is built, whatever the environment says.
PROFILE = ['profile.release.lto="fat"', "profile.release.codegen-units=1"]


def build() -> Path:
    """Build the program that runs one kernel, as optimised as the wheel is, and return its path."""
    command = ["cargo", "build", "--release", "-p", "fliphat-core", "--example", "count_instructions"]
    # Debug information only tells callgrind where the counted function starts; it changes no instruction.
    settings = [part for one in (*PROFILE, "profile.release.debug=1") for part in ("--config", one)]
    done = subprocess.run(
        [*command, *settings, "--message-format=json"],
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


def changes(before: dict[str, int], now: dict[str, int]) -> dict[str, float]:
    """Return by how much each kernel's count changed."""
    return {kernel: now[kernel] / before[kernel] - 1 for kernel in now}


def main() -> int:
    """Print the table; return 1 if a kernel is outside the band."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"keep the counts in {KEPT.name}")
    arguments = parser.parse_args()
    program = build()
    counts = {kernel: count(program, kernel) for kernel in KERNELS}
    before = counts | (json.loads(KEPT.read_text()) if KEPT.exists() else {})
    moved = changes(before, counts)
    for kernel, now in counts.items():
        print(f"{kernel:24} {before[kernel]:14,} {now:14,} {moved[kernel]:+8.2%}")
    if arguments.write:
        KEPT.write_text(json.dumps(counts, indent=1) + "\n")
        return 0
    return int(any(abs(change) > BAND for change in moved.values()))


if __name__ == "__main__":
    sys.exit(main())
