import importlib.util

import pytest

from policy_model import Fits
from postgres_server import Server, skip


@pytest.fixture
def fits(monkeypatch):
    """A stand-in for the fit, which remembers what it was given."""
    return Fits(monkeypatch)


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server of this run's own. It keeps nothing that a test does not kill it for."""
    if importlib.util.find_spec("psycopg") is None:
        skip("needs psycopg: pip install 'fliphat[postgres]'")
    server = Server(fsync="off")
    yield server
    server.close()


@pytest.fixture(params=["directory", "postgres"])
def place(request, tmp_path):
    """Where a new store can be made: a directory, or an empty database."""
    if request.param == "directory":
        return tmp_path / "store"
    return request.getfixturevalue("server").new()
