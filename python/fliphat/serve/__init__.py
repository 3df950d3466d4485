"""A policy behind HTTP: one owner of the store, many clients.

| file | what it holds |
|---|---|
| `bodies`, `compact`, `refusal` | what clients send and get, as JSON or in a compact form |
| `receipts` | ids that nobody can make up |
| `terms`, `opening` | what bodies must look like for the policy that is served, and which policy that is |
| `owner`, `play` | the one thread that plays: a group of requests, one sync, then their answers |
| `switch` | one arm for all, when something is wrong |
| `web`, `connections` | one request: its token, its limits, its answer; and how many there may be |
| `app` | the addresses, as a Starlette application |
| `decisions` | a log of decisions and rewards for the operator |
| `metrics`, `logs` | numbers and lines for operators, without contents |
| `openapi`, `page` | the description of the addresses; the operator's page |
| `settings`, `run` | the choices of an operator, and the server process |
| `client` | the client, with retries that are safe |

Only `app`, `metrics` and `run` need the extra ``serve``; the client needs the standard library alone.
"""

from fliphat.serve.app import make_app
from fliphat.serve.client import Client, Decided, ServerError
from fliphat.serve.settings import Limits, Tokens

__all__ = ["Client", "Decided", "Limits", "ServerError", "Tokens", "make_app"]
