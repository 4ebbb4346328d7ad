"""A grid that logs the nodes that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from logging import INFO
from time import monotonic, sleep
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore import log

#: Seconds between two progress lines.
REMIND_EVERY = 10.0

#: Seconds between two questions for replies: short at first, then long.
POLL = (0.1, 1.0)

#: Nodes that a progress line names.
NAMED = 8


class WatchedGrid(Grid):
    """Another grid whose ``send_and_receive`` logs the nodes that it waits for, and notes when each reply
    arrived.

    ``label`` gives the name of a node in messages, ``limit`` the seconds to wait for a type of message, given
    those of the caller.
    """

    def __init__(
        self, grid: Grid, label: Callable[[int], str], limit: Callable[[str, float | None], float | None]
    ) -> None:
        self._grid, self._label, self._limit = grid, label, limit
        #: Seconds from the request to its reply, by the request's message ID, of the latest exchange.
        self.seconds: dict[str, float] = {}

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """The replies that arrived in time."""
        messages = list(messages)
        self.seconds = {}
        if not messages:
            return []
        timeout = self._limit(messages[0].metadata.message_type, timeout)
        begun = monotonic()
        missing = {message_id for message_id in self._grid.push_messages(messages) if message_id}
        node_of = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
        replies: list[Message] = []
        pause, reminded = POLL[0], begun
        while True:
            for reply in self._grid.pull_messages(missing):
                replies.append(reply)
                self.seconds[reply.metadata.reply_to_message_id] = monotonic() - begun
            missing -= self.seconds.keys()
            now = monotonic()
            left = None if timeout is None else begun + timeout - now
            if not missing or (left is not None and left <= 0):
                return replies
            if now - reminded >= REMIND_EVERY:
                reminded = now
                self._remind(
                    [node_of[message_id] for message_id in missing if message_id in node_of], now - begun
                )
            sleep(pause if left is None else min(pause, left))
            pause = min(1.5 * pause, POLL[1])

    def _remind(self, nodes: list[int], seconds: float) -> None:
        names = sorted(self._label(node) for node in nodes)
        more = "" if len(names) <= NAMED else f" and {len(names) - NAMED} more"
        log(INFO, "waiting for %s%s (%.0f s)", ", ".join(names[:NAMED]), more, seconds)

    # The rest is the other grid's.

    def set_run(self, run: Any) -> None:
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        return self._grid.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        return self._grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self._grid.pull_messages(message_ids)
