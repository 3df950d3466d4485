"""Private linear bandits of others, on one engine and one ledger: to be compared with.

They are for simulation. What each one's paper says, what its constants really give and where it errs is in
``docs/peers.md``.
"""

from fliphat.policies.peers.base import Peer, PeerPrivacy
from fliphat.policies.peers.moment import MomentGreedy
from fliphat.policies.peers.rare_switching import RareSwitching
from fliphat.policies.peers.shariff_sheffet import ShariffSheffet

__all__ = ["MomentGreedy", "Peer", "PeerPrivacy", "RareSwitching", "ShariffSheffet"]
