"""Whether the things that a document names in backticks exist in the tree: paths, functions, tests, options.

Documents that argue by naming code (the proof, the walks of CONTRIBUTING) are only worth something while the
names are real. `missing` says what is not there, and a test fails on it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDERS = ("python", "rust", "tests", "benches", "docs", "examples")
_RUST_ITEM = r"\b(?:fn|struct|enum|trait|const|static|type|mod|macro_rules!)\s+{name}\b"
_NAME = r"[A-Za-z_]\w*"


def backticked(text: str) -> list[str]:
    """Return what a text has in single backticks, blocks of code left out."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def tables(text: str) -> list[list[dict[str, str]]]:
    """Return every Markdown table of a text as records by the header's names."""
    found, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            header, rule, *body = rows
            assert all(set(cell) <= set("-: ") for cell in rule), f"a table without a rule under {header}"
            for row in body:
                assert len(row) == len(header), f"a row has {len(row)} of {len(header)} columns: {row}"
            found.append([dict(zip(header, row, strict=True)) for row in body])
            rows = []
    return found


def missing(text: str) -> list[str]:
    """Return the backticked things of a text that the tree does not have.

    A thing may be a path (its end is enough), `file.rs: name`, `Type::method`, `module.function`,
    `Class.method`, a function, class, method or test, `option=value`, or a `fliphat` command. Where a path
    follows, as in "`name` in `path`" or "`name` of `path`", the name must be in that file.
    """
    absent = []
    for match in re.finditer(r"`([^`\n]+)`(?: (?:in|of) `([^`\n]+)`)?", text):
        thing, place = match.groups()
        if place is not None and _is_path(place):
            if not (files(place) and any(_defines(path, thing) for path in files(place))):
                absent.append(match.group(0))
        else:
            absent += [one for one in match.groups() if one is not None and not exists(one)]
    return absent


def exists(thing: str) -> bool:
    """Return whether the tree has what a pair of backticks holds."""
    thing = thing.strip()
    if _is_path(thing):
        return bool(files(thing))
    if match := re.fullmatch(rf"([\w/.]+\.(?:rs|py)): ({_NAME}(?:(?:::|\.){_NAME})?)", thing):
        return any(_defines(path, match[2]) for path in files(match[1]))
    if match := re.fullmatch(rf"({_NAME}) ?=[^=].*", thing):
        return any(match[1] in _arguments(path) for path in _sources(".py"))
    if match := re.match(r"fliphat ([a-z]+)\b", thing):
        return match[1] in _commands()
    thing = re.sub(r"\(.*", "", thing)
    if thing.startswith("fliphat.") and files(f"python/{thing.replace('.', '/')}.py"):
        return True
    return any(_defines(path, thing) for path in _sources(".py", ".rs"))


def files(path: str) -> list[Path]:
    """Return the files or folders whose path ends with this one."""
    ending = "/" + path.strip("/")
    folder = path.endswith("/")
    return [
        found
        for found in _tree()
        if f"/{found.relative_to(ROOT)}".endswith(ending) and found.is_dir() == folder
    ]


def _is_path(thing: str) -> bool:
    return re.fullmatch(r"[\w./-]+(?:/|\.(?:rs|py|md|toml|pyi|csv))", thing) is not None


@cache
def _tree() -> tuple[Path, ...]:
    inside = [
        path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts
    ]
    return (*inside, *(path for path in ROOT.iterdir() if path.is_file()))


def _sources(*endings: str) -> list[Path]:
    return [path for path in _tree() if path.suffix in endings]


def _defines(path: Path, name: str) -> bool:
    return _defines_in_rust(path, name) if path.suffix == ".rs" else _defines_in_python(path, name)


def _defines_in_rust(path: Path, name: str) -> bool:
    source = _text(path)
    if "::" not in name:
        return re.search(_RUST_ITEM.format(name=re.escape(name)), source) is not None
    owner, item = name.rsplit("::", 1)
    if not (re.fullmatch(_NAME, owner) and re.fullmatch(_NAME, item)):
        return False
    blocks = re.finditer(
        rf"^( *)(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:impl|trait|enum)\b[^{{;]*\b{owner}\b[^{{;]*\{{\n(.*?)^\1\}}",
        source,
        re.S | re.M,
    )
    return any(re.search(rf"\b(?:(?:fn|const|type)\s+)?{item}\b", block[2]) for block in blocks)


def _defines_in_python(path: Path, name: str) -> bool:
    if path.suffix != ".py":
        return False
    top, members = _python_names(path)
    if "." not in name:
        return name in top or any(name in names for names in members.values())
    owner, item = name.rsplit(".", 1)
    owner = owner.rsplit(".", 1)[-1]
    if owner in members:
        return item in members[owner]
    module = path.parent.name if path.name == "__init__.py" else path.stem
    # An object named like its module, such as `guarantee.proven`, has the members of the module's classes.
    return owner == module and (item in top or any(item in names for names in members.values()))


@cache
def _python_names(path: Path) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Return a module's own names and those of each class."""
    tree = ast.parse(_text(path))
    members = {
        node.name: frozenset(_assigned(node.body)) | frozenset(_attributes(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    return frozenset(_assigned(tree.body)), members


def _assigned(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _attributes(node: ast.ClassDef) -> set[str]:
    """Return the attributes that a class's methods set on self."""
    return {
        inner.attr
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute)
        and isinstance(inner.ctx, ast.Store)
        and isinstance(inner.value, ast.Name)
        and inner.value.id == "self"
    }


@cache
def _arguments(path: Path) -> frozenset[str]:
    return frozenset(node.arg for node in ast.walk(ast.parse(_text(path))) if isinstance(node, ast.arg))


@cache
def _commands() -> frozenset[str]:
    import argparse

    from fliphat import cli

    parsers = (action for action in cli._parser()._actions if isinstance(action, argparse._SubParsersAction))
    return frozenset(next(parsers).choices)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
