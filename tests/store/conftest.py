import pytest

from policy_model import Fits
from postgres_server import running_server


@pytest.fixture
def fits(monkeypatch):
    """A stand-in for the fit, which remembers what it was given."""
    return Fits(monkeypatch)


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server for all tests of these files."""
    with running_server() as server:
        yield server


@pytest.fixture(params=["directory", "postgres"])
def place(request, tmp_path):
    """Where a new store can be made: a directory, or an empty database."""
    if request.param == "directory":
        return tmp_path / "store"
    return request.getfixturevalue("server").new()
