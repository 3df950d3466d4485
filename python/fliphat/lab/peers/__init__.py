"""Private linear bandits of others, on one engine and one ledger: to be compared with.

They are for simulation. What each one's paper says, what its constants really give and where it errs is in
``docs/peers.md``.
"""

from fliphat.lab.peers.adac_oful import AdaCOFUL
from fliphat.lab.peers.chowdhury_zhou import ChowdhuryZhou
from fliphat.lab.peers.frank_wolfe import PrivateFrankWolfe
from fliphat.lab.peers.garcelon import GarcelonShuffle
from fliphat.lab.peers.han_local import HanOLS, HanSGD
from fliphat.lab.peers.hanna import HannaElimination
from fliphat.lab.peers.moment import MomentGreedy
from fliphat.lab.peers.peer import Peer, PeerPrivacy
from fliphat.lab.peers.rare_switching import RareSwitching
from fliphat.lab.peers.shariff_sheffet import ShariffSheffet
from fliphat.lab.peers.zheng import ZhengLocal

__all__ = [
    "AdaCOFUL",
    "ChowdhuryZhou",
    "GarcelonShuffle",
    "HanOLS",
    "HanSGD",
    "HannaElimination",
    "MomentGreedy",
    "Peer",
    "PeerPrivacy",
    "PrivateFrankWolfe",
    "RareSwitching",
    "ShariffSheffet",
    "ZhengLocal",
]
