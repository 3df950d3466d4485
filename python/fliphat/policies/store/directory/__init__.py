"""A policy kept in a directory: a ledger, and the files of the open episode."""

from fliphat.policies.store.directory.recover import open_store
from fliphat.policies.store.directory.store import DURABILITIES, kept_choices, recorded_settings

__all__ = ["DURABILITIES", "kept_choices", "open_store", "recorded_settings"]
