"""Private linear bandits of others, on one engine and one ledger: to be compared with.

They are for simulation. What each one's paper says, what its constants really give and where it errs is in
``docs/peers.md``.
"""

from fliphat.policies.peers.adac_oful import AdaCOFUL
from fliphat.policies.peers.base import Peer, PeerPrivacy
from fliphat.policies.peers.chowdhury_zhou import ChowdhuryZhou
from fliphat.policies.peers.frank_wolfe import PrivateFrankWolfe
from fliphat.policies.peers.han_local import HanOLS, HanSGD
from fliphat.policies.peers.moment import MomentGreedy
from fliphat.policies.peers.rare_switching import RareSwitching
from fliphat.policies.peers.shariff_sheffet import ShariffSheffet
from fliphat.policies.peers.zheng import ZhengLocal

__all__ = [
    "AdaCOFUL",
    "ChowdhuryZhou",
    "HanOLS",
    "HanSGD",
    "MomentGreedy",
    "Peer",
    "PeerPrivacy",
    "PrivateFrankWolfe",
    "RareSwitching",
    "ShariffSheffet",
    "ZhengLocal",
]
