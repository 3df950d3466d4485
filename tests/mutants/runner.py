"""Runs the tests that must notice a mutant: in a copy of the package, with one text replaced."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Kept between runs, so that only what a mutant touches is compiled again.
RUST_TARGET = ROOT / "target" / "mutants"


@dataclass(frozen=True)
class Mutant:
    """A mistake that someone could make: one text of one file replaced by another."""

    #: What is wrong, in a few words.
    name: str
    #: The file, from the root of the repository: Python of the package, or Rust of the core.
    file: str
    #: The text before, which must be found exactly once.
    before: str
    after: str
    #: The test that fails: a pytest id, or the path of a test of the Rust core.
    killer: str
    #: What people would lose.
    breaks: str

    @property
    def rust(self) -> bool:
        return self.file.startswith("rust/")

    def applied_to(self, source: str) -> str:
        """Return the file's text with the mistake; an error if the text is not found exactly once."""
        found = source.count(self.before)
        if found != 1:
            raise LookupError(
                f"mutant {self.name!r}: its text is found {found} times in {self.file} and must be found once. "
                "The code has moved: bring the list in tests/mutants/catalog.py up to date"
            )
        return source.replace(self.before, self.after)


def mutate(mutant: Mutant, root: Path) -> None:
    """Change the copy under `root`."""
    path = root / mutant.file
    if not path.exists():
        raise LookupError(f"mutant {mutant.name!r}: there is no {mutant.file}: bring the list up to date")
    path.write_text(mutant.applied_to(path.read_text(encoding="utf-8")), encoding="utf-8")


def copy_package(to: Path) -> Path:
    """Copy the Python package with its built extension; return the copy's root."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python", to / "python", ignore=ignored)
    return to


def copy_crates() -> Path:
    """Copy the Rust workspace to a fixed place: cargo compiles again what lies at a new path."""
    to = RUST_TARGET / "source"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, to / name)
    # Not with the old times: a file that was mutated before must look new to cargo.
    shutil.copytree(ROOT / "rust", to / "rust", copy_function=shutil.copyfile)
    return to


def run_pytest(killers: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """Run tests of this repository against the package copied to `root`."""
    package = root / "python"
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    check = f"import fliphat, sys; sys.exit(not fliphat.__file__.startswith({str(package)!r}))"
    subprocess.run([sys.executable, "-c", check], env=environment, cwd=root, check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *killers]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)


def run_cargo(killers: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """Run unit tests of the core in the workspace copied to `root`."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(RUST_TARGET)}
    command = ["cargo", "test", "--quiet", "--offline", "--package", "fliphat-core", "--lib", "--", "--exact"]
    return subprocess.run([*command, *killers], env=environment, cwd=root, capture_output=True, text=True)


def passed(result: subprocess.CompletedProcess[str], count: int) -> bool:
    """Whether at least `count` tests ran and all of them passed."""
    ran = sum(int(number) for number in re.findall(r"(\d+) passed", result.stdout))
    return result.returncode == 0 and ran >= count


def killed(result: subprocess.CompletedProcess[str]) -> bool:
    """Whether a test failed: not its collection, not the compiler."""
    return bool(re.search(r"^FAILED |^test result: FAILED", result.stdout, re.MULTILINE))
