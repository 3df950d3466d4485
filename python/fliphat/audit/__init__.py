"""The audit of everything: mechanisms, estimators and the policy, with broken versions that must be caught.

How one claim is tested is in :mod:`fliphat.privacy.audit`; this room puts the cases of all rooms together.
"""
