"""Stores that keep a policy durably; `base` says what the engine asks of one."""
