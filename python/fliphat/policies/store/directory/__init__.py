"""A policy kept in a directory: a ledger, and the files of the open episode."""

from fliphat.policies.store.directory.recover import open_store
from fliphat.policies.store.directory.store import DURABILITIES, recorded_accounting, recorded_settings

__all__ = ["DURABILITIES", "open_store", "recorded_accounting", "recorded_settings"]
