"""The kinds of clients. A kind is a module with a class whose `main` is what the client does, step by step."""

from __future__ import annotations

from tests.simulator.clients.classic_member import ClassicMember
from tests.simulator.clients.client import Client
from tests.simulator.clients.committer import Committer
from tests.simulator.clients.consumer_member import ConsumerMember
from tests.simulator.clients.producer import Producer
from tests.simulator.clients.readers import FinalReader, Reader
from tests.simulator.clients.share_member import ShareMember
from tests.simulator.clients.streams_member import StreamsMember
from tests.simulator.clients.transactional_producer import TransactionalProducer

KINDS: dict[str, type[Client]] = {
    "classic_member": ClassicMember,
    "committer": Committer,
    "consumer_member": ConsumerMember,
    "final_reader": FinalReader,
    "producer": Producer,
    "reader": Reader,
    "share_member": ShareMember,
    "streams_member": StreamsMember,
    "transactional_producer": TransactionalProducer,
}
"""By the kind of their line in a script."""
