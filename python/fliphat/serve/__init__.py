"""A policy behind HTTP: one owner of the store, many clients.

| file | what it holds |
|---|---|
| `bodies` | what clients send and get: JSON, and a compact binary form |
| `terms`, `opening` | what bodies must look like for the policy that is served, and which policy that is |
| `owner`, `play` | the one thread that plays: a group of requests, one sync, then their answers |
| `web` | one request: its token, its limits, its answer |
| `app` | the addresses, as a Starlette application |
| `metrics`, `logs` | numbers and lines for operators, without contents |
| `openapi` | the description of the addresses, and a page that needs nothing from elsewhere |
| `settings`, `run` | the choices of an operator, and the server process |
| `client` | the client, with retries that are safe |

Only `app`, `metrics` and `run` need the extra ``serve``; the client needs the standard library alone.
"""

from fliphat.serve.app import make_app
from fliphat.serve.client import Client, ServerError
from fliphat.serve.settings import Limits, Tokens

__all__ = ["Client", "Limits", "ServerError", "Tokens", "make_app"]
