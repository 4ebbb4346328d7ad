"""The side of the server."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from logging import INFO, WARNING
from time import monotonic, sleep
from typing import Any, Literal, NoReturn

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result
from flwr.supercore import log

import fedlink
from fedlink._config import Config
from fedlink._server import checked

from . import protocol
from .folder import Folder
from .grid import NAMED, REMIND_EVERY, WatchedGrid
from .identity import Identities, Keys
from .metrics import alike
from .nodes import GONE, Answer, Asked, Nodes
from .protocol import KEY, METRICS, ProtocolError
from .record import NodeRecord, Outcome, RoundRecord
from .uplink import SimulatedUplink, Uplink

#: Arguments of ``FedAvg`` that a policy decides here.
NOT_OURS = ("fraction_train", "min_train_nodes")

#: The metrics of a node that are not aggregated.
LEFT_OUT = "round %d, %s: its metrics are left out: %s"

#: The worth of each report: a node may send a false one.
TRUST = {
    "norm": "the norm is a claim; the audit finds one that contradicts the update that is sent, and no other",
    "compressed-norm": "the norm after compression is checked against the update that is sent (defense.audit)",
    "loss": "the training loss is a claim that cannot be checked",
    "rms-loss": "the training loss is a claim that cannot be checked",
}

#: Updates with a smaller part of the model's entries are worth a warning.
TINY = 1e-3

#: A loss so many times that of the first evaluation (or 1, if that is more) stops the run.
EXPLODES = 1000.0

#: The reason of a node that gets no work.
BUSY = "it is busy with a request of an earlier round"


class NobodyTakesPart(RuntimeError):
    """There is no node that could take part in the run."""


class Diverged(RuntimeError):
    """The loss of the server's evaluation is not finite, or far above that of the first evaluation."""


@dataclass
class _Round:
    """A round between its two phases."""

    record: RoundRecord
    begun: float
    #: The nodes that trained and reported, by device, in the policy's order.
    reported: dict[int, NodeRecord] = field(default_factory=dict)
    #: The metrics of their training, by device.
    metrics: dict[int, MetricRecord] = field(default_factory=dict)
    uploads: list[Asked] = field(default_factory=list)
    #: The scheduled devices, in the policy's order.
    schedule: list[int] = field(default_factory=list)
    grid: Grid | None = None


class UpdateAwareStrategy(FedAvg):
    """Schedules nodes by channel and by update, and receives the compressed updates of the scheduled ones.

    It is the server of ``fedlink.simulate`` with real nodes: it selects the nodes that train, schedules,
    grants bits, audits and aggregates, so that the same configuration gives the same model to the bit.

    ``policy`` is the name of a policy (``fedlink list policies``), or a custom one as ``simulate`` takes it;
    ``k`` nodes are scheduled per round. ``uplink`` is the source of the links' state: ``SimulatedUplink`` or
    ``DeclaredUplink``. ``config`` has everything else: a dictionary, TOML text or the path of a file with the
    keys of ``fedlink config``, of which those of policy, compression, aggregation, server optimizer, defense,
    radio and seed are used (model, data and training of the nodes are defined by their app). ``policy``,
    ``k`` and ``uplink`` take precedence over it and can be left out if it has them. ``compressor``,
    ``fading`` and ``parts`` are custom parts as ``simulate`` takes them; a compressor is needed by the nodes'
    app too.

    Reports are audited, whatever ``config`` sets, unless ``audit`` is False or the compressor is a custom
    one. With ``substitute`` the symbols of a scheduled node that fails before it sends are offered to a node
    that has trained.

    ``records`` is a folder for the records of the run, written as they come; with ``resume`` a run that was
    stopped continues there, with the state of its policy.

    The first round begins when ``min_available_nodes`` are connected (all devices, if not given), and the
    run ends if they are not after ``start_timeout`` seconds; later rounds begin with the nodes that are
    there. The server waits ``hello_timeout`` seconds for the answer to a greeting, ``compute_timeout`` for
    training, ``upload_timeout`` for an update and ``evaluate_timeout`` for evaluation by the nodes; a limit
    that is None is the ``timeout`` of :meth:`start`. A request expires with its limit. A node that exceeds
    one is busy: it gets no work until it has answered. Nodes that do not answer, fail or send impossible
    values are left out: :attr:`records` and the metrics of the round record these nodes and the reasons. If
    no node can take part, the run ends with :class:`NobodyTakesPart`.

    ``keys`` binds devices to the keys of authenticated nodes: a table of public keys by device, or
    ``"first-come"``, where the first node that is a device binds it. Another claimant is rejected. Without
    ``keys`` a node that says it is a device takes the place of the earlier one.

    Evaluation by the nodes (``fraction_evaluate``, ``min_evaluate_nodes``, ``evaluate_metrics_aggr_fn``) and
    the metrics of training (``train_metrics_aggr_fn``, ``weighted_by_key``) are those of ``FedAvg``, over the
    nodes that are there.
    """

    def __init__(
        self,
        policy: Any = None,
        k: int | None = None,
        *,
        uplink: Uplink | None = None,
        config: Config | None = None,
        compressor: Any = None,
        fading: Any = None,
        parts: Mapping[str, Any] | None = None,
        audit: bool | None = None,
        substitute: bool = True,
        records: str | os.PathLike[str] | None = None,
        resume: bool = False,
        hello_timeout: float | None = 30.0,
        compute_timeout: float | None = None,
        upload_timeout: float | None = None,
        evaluate_timeout: float | None = None,
        start_timeout: float | None = None,
        min_available_nodes: int | None = None,
        keys: Keys | Literal["first-come"] | None = None,
        **fedavg: Any,
    ) -> None:
        if wrong := [name for name in NOT_OURS if name in fedavg]:
            raise TypeError(f"leave out {', '.join(wrong)}: the policy selects the nodes that train")
        if "kc" in fedavg:
            raise TypeError('kc is a key of its policy: config={"schedule.bc-bn2.kc": …}')
        if uplink is None and config is None:
            raise TypeError(
                "give the number of devices: uplink=SimulatedUplink(devices=…), or data.devices in config"
            )
        if resume and records is None:
            raise TypeError("resume needs the folder of the run that was stopped: records=…")
        self._settings = {} if uplink is None else uplink.settings()
        if k is not None:
            self._settings["schedule.k"] = k
        self._config: Config = {} if config is None else config
        self._parts = {"policy": policy, "compressor": compressor, "fading": fading, "parts": parts}
        if audit is None:
            resolved = self._resolved()
            audit = resolved["compress"]["scheme"] not in resolved.get("custom", {})
        self._settings["defense.audit"] = audit
        #: The configuration, every default written out.
        self.config = self._resolved()
        if self.config["adversary"]["share"] > 0:
            raise ValueError("adversary.share: nodes of a real run cannot be made adversarial; leave it out")
        self.policy: str = self.config["schedule"]["policy"]
        self.k: int = self.config["schedule"]["k"]
        self.devices: int = self.config["data"]["devices"]
        self.uplink: Uplink = uplink or SimulatedUplink(self.devices)
        wanted = self.devices if min_available_nodes is None else min_available_nodes
        super().__init__(min_available_nodes=wanted, **fedavg)
        self.hello_timeout, self.start_timeout = hello_timeout, start_timeout
        self.compute_timeout, self.upload_timeout = compute_timeout, upload_timeout
        self.evaluate_timeout = evaluate_timeout
        self.substitute = substitute
        #: The outcome of every node, round by round; of a run that was resumed, the rounds since.
        self.records: list[RoundRecord] = []
        #: The server of the run: its tables, digest and model.
        self.server: fedlink.Server | None = None
        self._folder = None if records is None else Folder(records, resume)
        self._arrays = ArrayRecord()
        #: The part of the configuration that nodes need to compress, as every request has it.
        self._encoder = ""
        self._timeout: float | None = None
        #: The nodes that the run has met.
        self.nodes = Nodes(self.devices, self.uplink.declared, Identities.read(keys, self.devices))
        self._round: _Round | None = None
        self._reports: dict[int, list[float]] = {}
        #: Whether the warning of small updates was given.
        self._is_warned = False
        #: The loss of the first evaluation by the server.
        self._first_loss: float | None = None

    @classmethod
    def reference(cls, *arguments: Any, **options: Any) -> UpdateAwareStrategy:
        """The same strategy with every node scheduled and no compression: updates arrive whole, as float32.

        It takes the arguments of the strategy; ``policy``, ``k``, the radio and the compression are replaced.
        If a problem remains with it, neither scheduling nor compression is the cause.
        """
        return _Reference(*arguments, **options)

    @property
    def session(self) -> NoReturn:
        raise AttributeError("the server of a strategy is strategy.server, no longer strategy.session")

    def _new_server(
        self, theta: protocol.Update, rounds: int | None = None, layers: Sequence[Sequence[int]] = ()
    ) -> fedlink.Server:
        settings = self._settings if rounds is None else self._settings | {"run.rounds": rounds}
        return fedlink.Server(self._config, theta, layers=layers, settings=settings, **self._parts)

    def _resolved(self) -> dict[str, Any]:
        """The configuration, checked, every default written out."""
        # An object serves one server, and reading its keys may use it.
        objects = (fedlink.Policy, fedlink.Compressor, fedlink.Fading)
        parts: dict[str, Any] = {
            name: copy(part) if isinstance(part, objects) else part for name, part in self._parts.items()
        }
        return checked(self._config, settings=self._settings, **parts)

    def summary(self) -> None:
        """Logs how nodes are scheduled."""
        compress = self.config["compress"]
        log(INFO, "\t├──> Scheduling: %s, k = %d of %d devices", self.policy, self.k, self.devices)
        kept = "" if compress["feedback"] == "off" else f", error feedback: {compress['feedback']}"
        log(INFO, "\t├──> Compression: %s%s", compress["scheme"], kept)
        log(INFO, "\t├──> Uplink: %s", self.uplink)
        if self._folder is not None:
            log(INFO, "\t├──> Records: %s", self._folder.path)
        begin = "\t└──> Nodes to begin with: %d; evaluated on: %.2f of those that can"
        log(INFO, begin, self.min_available_nodes, self.fraction_evaluate)

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Runs all rounds, as every Flower strategy does; ``timeout`` limits each phase.

        ``accuracy`` and ``loss`` of the result of ``evaluate_fn`` enter the records and their digest. A run
        that is resumed does the remaining rounds of its ``num_rounds``.
        """
        self._timeout = timeout
        server = self._begin(initial_arrays, num_rounds)
        done = server.rounds_done
        arrays = initial_arrays
        if done:
            arrays = protocol.model_of(server.theta, initial_arrays)
            log(INFO, "resuming after round %d of %d", done, num_rounds)

        def evaluate(number: int, model: ArrayRecord) -> MetricRecord | None:
            metrics = None if evaluate_fn is None else evaluate_fn(done + number, model)
            if number > 0:
                self._evaluated(metrics)
            return metrics

        watched = WatchedGrid(grid, self.nodes.label, self._limit)
        result = super().start(
            watched, arrays, num_rounds - done, timeout, train_config, evaluate_config, evaluate
        )
        if not len(result.arrays):
            result.arrays = arrays
        if done:
            for name in (
                "train_metrics_clientapp",
                "evaluate_metrics_clientapp",
                "evaluate_metrics_serverapp",
            ):
                setattr(
                    result,
                    name,
                    {done + number: metrics for number, metrics in getattr(result, name).items()},
                )
        return result

    def _begin(self, arrays: ArrayRecord, rounds: int | None = None) -> fedlink.Server:
        """A new server from these arrays, or that of the run that was stopped."""
        layers = protocol.layers_of(arrays)
        self.server = server = self._new_server(protocol.theta_of(arrays), rounds, layers)
        self._arrays, self.records, self._round = arrays, [], None
        self._encoder = protocol.encoder_config(self.config, layers)
        for ask in server.asks:
            log(INFO, "reports: %s", TRUST[ask])
        if self._folder is not None:
            self._folder.begin(server)
            self._folder.restore_keys(self.nodes.identities)
        return server

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Runs the first phase, has the server schedule, and gives the messages of the second."""
        server = self.server or self._begin(arrays)
        if not protocol.holds(arrays, server.theta):
            raise ValueError(
                "the model is not the one that the last round left: the server keeps it from round to round"
            )
        this = self._round = _Round(RoundRecord(server.rounds_done + 1), monotonic(), grid=grid)
        self.records.append(this.record)
        node_of = self._meet(grid, this.record)
        config["server-round"] = this.record.round
        self._compute(this, arrays, config, grid, node_of)
        self._check_hope(node_of, this.record)
        self._schedule(this)
        log(
            INFO,
            "configure_train: %d of %d nodes are to send: devices %s",
            len(this.uploads),
            len(node_of),
            [node.device for node, _ in this.uploads],
        )
        return [message for _, message in this.uploads]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Delivers the uploads to the server: θ(t) becomes θ(t+1)."""
        this, server = self._round, self.server
        if this is None or server is None:
            return None, None
        self._round = None
        record = this.record
        uploads = self._read_uploads(this, this.uploads, replies)
        uploads += self._substitutes(this)
        record.trained = len(this.reported)
        reported = this.reported.items()
        losses = {device: node.train_loss for device, node in reported if node.train_loss is not None}
        if losses and len(losses) == len(this.reported):
            record.train_loss = server.mean_loss(losses)
        excluded = set(server.excluded)
        arrivals = server.deliver(uploads, record.trained, record.train_loss or 0.0)
        for device, arrival in zip(this.schedule, arrivals):
            _judge(this.reported[device], arrival)
        for device in sorted(set(server.excluded) - excluded):
            log(
                WARNING,
                "round %d: device %d is excluded from here on (defense.strikes)",
                record.round,
                device,
            )
        self._log_entries(record, server)
        record.nodes.sort(key=lambda node: -1 if node.device is None else node.device)
        record.seconds = monotonic() - this.begun
        for node in record.nodes:
            if node.reason:
                log(
                    WARNING,
                    "round %d, device %s: %s (%s)",
                    record.round,
                    node.device,
                    node.outcome,
                    node.reason,
                )
        if self._folder is not None:
            self._folder.add(server, record)
        metrics = record.metrics()
        kept, problems = alike(this.metrics, self.weighted_by_key)
        for device, problem in problems.items():
            log(WARNING, LEFT_OUT, record.round, f"device {device}", problem)
        if kept:
            contents = [RecordDict({METRICS: one}) for one in kept]
            metrics.update(self.train_metrics_aggr_fn(contents, self.weighted_by_key))
        return protocol.model_of(server.theta, self._arrays), metrics

    def _log_entries(self, record: RoundRecord, server: fedlink.Server) -> None:
        """Logs the part of the model that the updates of a round carry."""
        entries = [node.entries or 0 for node in record.having(Outcome.SENT)]
        if not entries:
            return
        size, mean = server.theta.size, sum(entries) / len(entries)
        log(INFO, "round %d: an update has %.0f of %d entries on average", record.round, mean, size)
        if mean < TINY * size and not self._is_warned:
            self._is_warned = True
            log(
                WARNING,
                "updates have less than %g %% of the model's entries: give the uplink more symbols, or a "
                "longer deadline",
                100 * TINY,
            )

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Requests for the nodes that are there and have an evaluation function."""
        there = set(grid.get_node_ids())
        able = [node for node in self.nodes.current() if node in there and node in self.nodes.evaluates]
        if self.fraction_evaluate == 0.0 or not able:
            return []
        count = min(len(able), max(int(len(able) * self.fraction_evaluate), self.min_evaluate_nodes))
        config["server-round"] = server_round if self.server is None else self.server.rounds_done
        log(INFO, "configure_evaluate: %d of %d nodes", count, len(able))
        content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        chosen = sorted(random.sample(able, count))
        return [Message(content, node_id, MessageType.EVALUATE) for node_id in chosen]

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The aggregate of the nodes' evaluations, over those that can be aggregated."""
        number = server_round if self.server is None else self.server.rounds_done
        found: dict[int, MetricRecord] = {}
        problems: dict[int, str] = {}
        for reply in replies:
            node_id = reply.metadata.src_node_id
            if reply.has_error():
                problems[node_id] = _reason(reply.error.reason or f"error {reply.error.code}")
            elif len(records := list(reply.content.metric_records.values())) != 1:
                problems[node_id] = f"there are {len(records)} MetricRecords instead of one"
            else:
                found[node_id] = records[0]
        kept, unlike = alike(found, self.weighted_by_key)
        for node_id, problem in (problems | unlike).items():
            log(WARNING, LEFT_OUT, number, self.nodes.label(node_id), problem)
        log(INFO, "aggregate_evaluate: the metrics of %d nodes", len(kept))
        contents = [RecordDict({METRICS: one}) for one in kept]
        return self.evaluate_metrics_aggr_fn(contents, self.weighted_by_key) if kept else None

    def _evaluated(self, metrics: MetricRecord | None) -> None:
        """Notes the server's own evaluation, and closes the records of the round."""
        server = self.server
        if server is None or not self.records:
            return
        numbers = (
            {}
            if metrics is None
            else {k: float(v) for k, v in metrics.items() if isinstance(v, (int, float))}
        )
        loss = numbers.get("loss")
        if loss is not None and not self._is_sound(loss):
            raise Diverged(self._stopped(loss))
        if "accuracy" in numbers:
            server.evaluated(numbers.pop("accuracy"), numbers.pop("loss", float("nan")), numbers)
        if self._folder is not None:
            self._folder.evaluated(server, self.records[-1])

    def _is_sound(self, loss: float) -> bool:
        """Whether training may go on after an evaluation with this loss."""
        if self._first_loss is None and math.isfinite(loss):
            self._first_loss = loss
        return math.isfinite(loss) and loss <= EXPLODES * max(1.0, self._first_loss or 0.0)

    def _stopped(self, loss: float) -> str:
        """The reason why the run stops, and the way to resume it."""
        number = self.records[-1].round
        problem = f"the loss of the evaluation after round {number} is {loss:g}: the run has stopped"
        sent = [f"{node.device}" for node in self.records[-1].having(Outcome.SENT)]
        senders = f"; devices {', '.join(sent)} sent in this round" if sent else ""
        if self._folder is None:
            return f"{problem}{senders}. Give records=FOLDER, and the last good model is kept"
        good = self._folder.roll_back()
        return (
            f"{problem}{senders}. {self._folder.path} has the model of round {good}: leave out the node at "
            "fault and resume with resume=True, or begin anew with a lower rate"
        )

    # Nodes.

    def _limit(self, message_type: str, timeout: float | None) -> float | None:
        """The seconds to wait for a type of message if the caller passes ``timeout``."""
        if message_type.startswith(MessageType.EVALUATE):
            own = self.evaluate_timeout
        elif message_type.endswith(protocol.HELLO):
            own = self.hello_timeout
        else:
            own = self.upload_timeout if message_type.endswith(protocol.UPLOAD) else self.compute_timeout
        return timeout if own is None else own

    def _message(self, content: RecordDict, node: NodeRecord, kind: str) -> Message:
        """A request that expires with the limit of its phase, so that no node works on an old one."""
        message_type = f"train.{kind}"
        return Message(content, node.node_id, message_type, ttl=self._limit(message_type, self._timeout))

    def _meet(self, grid: Grid, record: RoundRecord) -> dict[int, int]:
        """Waits for nodes, greets new ones, and returns the node of every device that can work."""
        first = len(self.records) == 1
        needed = self.min_available_nodes if first else 1
        limit = self.start_timeout if first and self.start_timeout is not None else self._timeout
        begun, reminded = monotonic(), 0.0
        while True:
            self.nodes.keys = {node.node_id: node.public_key for node in grid.get_nodes()}
            present = set(self.nodes.keys)
            self._greet(grid, record, present)
            node_of = {device: node for node, device in self.nodes.current().items() if node in present}
            free = {device: node for device, node in node_of.items() if node not in self.nodes.busy}
            if len(present) >= needed and (free or not node_of):
                break
            waited = monotonic() - begun
            if limit is not None and waited > limit:
                raise NobodyTakesPart(self._missing(node_of, needed, limit))
            if not reminded or waited - reminded >= REMIND_EVERY:
                reminded = max(waited, 0.1)
                log(INFO, "%s (%.0f s)", self._missing(node_of, needed, None), waited)
            sleep(min(1.0, limit or 1.0))
        if not node_of:
            raise NobodyTakesPart("no node can take part:\n" + "\n".join(self.nodes.problems.values()))
        busy = {device: node for device, node in node_of.items() if device not in free}
        record.nodes += [NodeRecord(node, device, "hello", reason=BUSY) for device, node in busy.items()]
        return free

    def _greet(self, grid: Grid, record: RoundRecord, present: set[int]) -> None:
        """Greets the nodes that are new, and reads the answers of busy ones."""
        self.nodes.keep(present)
        late = [(node, self._answer_of(node, reply)) for node, reply in self.nodes.freed(grid)]
        answers = [(node, answer) for node, answer in late if node.device is None]
        asked = [
            (NodeRecord(node_id, None, "hello"), self.nodes.greeting(node_id))
            for node_id in self.nodes.strangers(present)
        ]
        answers += zip([node for node, _ in asked], self._ask(grid, asked))
        for node, answer in answers:
            if answer is not None and self.nodes.introduce(node, answer):
                if self._folder is not None:
                    self._folder.keep_keys(self.nodes.identities)
            else:
                record.nodes.append(node)
                self.nodes.problems[node.node_id] = f"node {node.node_id}: {node.reason}"
                if node.outcome is Outcome.FAILED:
                    self.nodes.rejected.add(node.node_id)

    def _missing(self, node_of: Mapping[int, int], needed: int, limit: float | None) -> str:
        """The nodes that a round waits for, in words."""
        if len(self.records) > 1:
            state = "all nodes are busy" if node_of else "all nodes are gone"
            return state + ("" if limit is None else f", and none came back within {limit:.0f} s")
        missing = [str(device) for device in range(self.devices) if device not in node_of]
        named = ", ".join(missing[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        state = f"{len(node_of)} of {needed} nodes are here; missing: devices {named}{more}"
        if limit is None:
            return f"waiting for nodes to connect: {state}"
        problems = "".join(f"\n{problem}" for problem in self.nodes.problems.values())
        return f"{state}, after {limit:.0f} s. Start them, or lower min_available_nodes.{problems}"

    def _check_hope(self, node_of: dict[int, int], record: RoundRecord) -> None:
        """Stops a run in which every node that is there has failed."""
        for node in record.nodes:
            if node.outcome in (Outcome.FAILED, Outcome.REJECTED):
                self.nodes.problems[node.node_id] = f"{self.nodes.label(node.node_id)}: {node.reason}"
            elif node.outcome is Outcome.NOT_SCHEDULED:
                self.nodes.problems.pop(node.node_id, None)
        if all(node_id in self.nodes.problems for node_id in node_of.values()):
            raise NobodyTakesPart("every node failed:\n" + "\n".join(self.nodes.problems.values()))

    def _ask(self, grid: Grid, asked: list[Asked]) -> list[Answer | None]:
        """Sends messages and waits for the answers."""
        if not asked:
            return []
        messages = [message for _, message in asked]
        return self._answers(asked, grid.send_and_receive(messages, timeout=self._timeout), grid)

    def _answers(
        self, asked: list[Asked], replies: Iterable[Message], grid: Grid | None
    ) -> list[Answer | None]:
        """The answer of each node; for None the node's record has the reason."""
        replied = {reply.metadata.reply_to_message_id: reply for reply in replies}
        seconds = getattr(grid, "seconds", {})
        answers: list[Answer | None] = []
        for node, message in asked:
            message_id = message.metadata.message_id
            reply = replied.get(message_id)
            node.down_bytes += protocol.size_of(message)
            if node.phase != "hello":
                setattr(node, f"{node.phase}_seconds", seconds.get(message_id))
            answers.append(None if reply is None else self._answer_of(node, reply))
            if reply is None:
                node.outcome, node.reason = Outcome.ABSENT, "no answer in time"
                if grid is not None:
                    self.nodes.late(grid, node, message)
        return answers

    @staticmethod
    def _answer_of(node: NodeRecord, reply: Message) -> Answer | None:
        """fedlink's part of a reply; for None the node's record has the reason."""
        if reply.has_error():
            node.outcome = Outcome.ABSENT if reply.error.code in GONE else Outcome.FAILED
            node.reason = _reason(reply.error.reason or f"error {reply.error.code}")
        elif reply.metadata.src_node_id != node.node_id:
            node.outcome = Outcome.REJECTED
            node.reason = f"node {reply.metadata.src_node_id} answered for it"
        else:
            node.up_bytes += protocol.size_of(reply)
            return protocol.record_of(reply)
        return None

    # The first phase.

    def _compute(
        self, this: _Round, arrays: ArrayRecord, config: ConfigRecord, grid: Grid, node_of: dict[int, int]
    ) -> None:
        """Candidates train and report."""
        server = self._open()
        if isinstance(self.uplink, SimulatedUplink):
            gains = server.links(server.rounds_done).estimates
            call = server.begin(present=sorted(node_of))
        else:
            gains, capacities = self.uplink.links(self.nodes.rates)
            call = server.begin(present=sorted(node_of), gains=gains, capacities=capacities)
        acknowledged = dict(zip(call.candidates.tolist(), call.acknowledged))
        asked: dict[int, Asked] = {}
        for device, alone_bits in zip(call.candidates.tolist(), call.alone_bits.tolist()):
            node = NodeRecord(node_of[device], device, "compute", gain=float(gains[device]))
            request = protocol.request(
                round=this.record.round, device=device, alone_bits=alone_bits, encoder=self._encoder
            )
            if call.asks:
                request["asks"] = " ".join(call.asks)
            if device in acknowledged:
                request["acknowledged"] = acknowledged[device]
            if self.uplink.declared:
                request["declared"] = True
            content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config, KEY: request})
            asked[device] = node, self._message(content, node, protocol.COMPUTE)
        this.record.nodes.extend(node for node, _ in asked.values())
        messages = [message for _, message in asked.values()]
        replies = list(grid.send_and_receive(messages, timeout=self._timeout)) if messages else []
        metrics_of = {reply.metadata.src_node_id: reply.content for reply in replies if reply.has_content()}
        for (device, (node, _)), answer in zip(
            asked.items(), self._answers(list(asked.values()), replies, grid)
        ):
            if answer is None:
                continue
            try:
                self._read_report(node, answer, call.asks)
            except ProtocolError as problem:
                node.outcome, node.reason = Outcome.REJECTED, f"{problem}"
                continue
            if acknowledged.get(device) and "forget" in answer:
                # It has lost its half of the state, so both sides start again from zero.
                server.forget(device)
            node.outcome = Outcome.NOT_SCHEDULED
            this.reported[device] = node
            metrics = metrics_of[node.node_id].metric_records.get(METRICS)
            if metrics is not None:
                this.metrics[device] = metrics

    def _read_report(self, node: NodeRecord, answer: Answer, asks: list[str]) -> None:
        """Reads and checks the report of a candidate."""
        answers = protocol.answers(answer, asks)
        rate = protocol.real(answer, "rate", above=0.0) if self.uplink.declared else None
        loss = protocol.finite(answer, "loss") if "loss" in answer else None
        examples = protocol.whole(answer, "examples", 1, 2**53) if "examples" in answer else None
        if examples is None and self.config["learn"]["aggregate"] == "by-size":
            raise ProtocolError(
                f'learn.aggregate = "by-size" needs its samples: return {self.weighted_by_key!r} '
                "among the metrics of training"
            )
        node.train_seconds = protocol.real(answer, "seconds") if "seconds" in answer else None
        node.train_loss, node.examples = loss, examples
        node.report = answers[0] if answers else 0.0
        self._reports[node.node_id] = answers
        if rate is not None and node.device is not None:
            self.nodes.rates[node.device] = rate

    def _schedule(self, this: _Round) -> None:
        """The server schedules among those that reported, and grants each its bits."""
        server = self._open()
        devices = list(this.reported)
        answers = np.array(
            [self._reports.pop(node.node_id) for node in this.reported.values()], dtype=np.float32
        )
        answers = answers.reshape(len(devices), len(server.asks))
        sizes = {device: node.examples for device, node in this.reported.items() if node.examples is not None}
        links = {}
        if not isinstance(self.uplink, SimulatedUplink):
            links["gains"], links["capacities"] = self.uplink.links(self.nodes.rates)
        for grant in server.report(devices, answers, samples=sizes, **links):
            this.uploads.append(self._granted(this, this.reported[grant.device], grant))
            this.schedule.append(grant.device)

    def _granted(self, this: _Round, node: NodeRecord, grant: fedlink.Grant) -> Asked:
        """The request to a scheduled node."""
        unit = self.uplink.unit
        node.capacity, node.bit_weight, node.granted = (
            grant.capacity / unit,
            grant.bit_weight,
            grant.symbols * unit,
        )
        node.budget, node.power, node.airtime_seconds = grant.budget, grant.power, grant.seconds
        if self.uplink.declared:
            node.power, node.airtime_seconds = None, grant.airtime * unit
        node.outcome, node.phase = Outcome.ABSENT, "upload"
        request = protocol.request(
            round=this.record.round,
            device=grant.device,
            budget=float(grant.budget),
            limit=protocol.payload_limit(self._size),
            encoder=self._encoder,
        )
        return node, self._message(RecordDict({KEY: request}), node, protocol.UPLOAD)

    # The second phase.

    def _read_uploads(
        self, this: _Round, asked: list[Asked], replies: Iterable[Message]
    ) -> list[fedlink.Upload]:
        """The uploads; if a node sent nothing, its record has the reason."""
        uploads = []
        for (node, _), answer in zip(asked, self._answers(asked, replies, this.grid)):
            if answer is not None and (upload := self._read_upload(node, answer)) is not None:
                uploads.append(upload)
        return uploads

    def _read_upload(self, node: NodeRecord, answer: Answer) -> fedlink.Upload | None:
        device = int(node.device or 0)
        if "lost" in answer:
            node.outcome = Outcome.LOST_UPDATE
            has = protocol.plain(str(answer["lost"]))
            node.reason = f"it was restarted between the phases; the update it has is {has}"
            return None
        node.outcome = Outcome.REJECTED
        if answer.get("silent") is True:
            node.q, node.bits, node.entries = 0, 0.0, 0
            return fedlink.Upload(device)
        payload = answer.get("payload")
        if not isinstance(payload, bytes):
            # It arrived and cannot be read: the server counts it as bytes that no codec reads.
            payload, answer = b"", {"level": 1, "bits": 0.0, "entries": 0}
            node.reason = "there is no payload in its answer"
        elif len(payload) > (limit := protocol.payload_limit(self._size)):
            node.reason = f"its payload has {len(payload)} bytes, and {limit} are the most"
            payload, answer = b"", {"level": 1, "bits": 0.0, "entries": 0}
        try:
            node.q = protocol.whole(answer, "level", 1, 2**53)
            node.bits = protocol.real(answer, "bits")
            node.entries = protocol.whole(answer, "entries", 0, 2**53)
        except ProtocolError as problem:
            node.q, node.bits, node.entries, payload = 1, 0.0, 0, b""
            node.reason = f"{problem}"
        node.payload_bytes = len(payload)
        return fedlink.Upload(device, payload=payload, level=node.q, bits=node.bits, entries=node.entries)

    def _substitutes(self, this: _Round) -> list[fedlink.Upload]:
        """Offers the symbols of those that failed before they sent to nodes that have trained, once."""
        failed = [node for node, _ in this.uploads if node.outcome in FAILED_TO_SEND]
        if not (self.substitute and failed and this.grid is not None):
            return []
        server = self._open()
        asked: list[Asked] = []
        for node in failed:
            grant = server.substitute(int(node.device or 0))
            if grant is None:
                continue
            other = this.reported[grant.device]
            other.substitute_for = node.device
            this.schedule[this.schedule.index(int(node.device or 0))] = grant.device
            # It is no longer scheduled: another one is in its place.
            node.capacity = node.bit_weight = node.granted = node.budget = None
            node.power = node.airtime_seconds = None
            asked.append(self._granted(this, other, grant))
        if not asked:
            return []
        log(
            INFO,
            "round %d: devices %s send in the place of others",
            this.record.round,
            [n.device for n, _ in asked],
        )
        replies = this.grid.send_and_receive([message for _, message in asked], timeout=self._timeout)
        return self._read_uploads(this, asked, replies)

    @property
    def _size(self) -> int:
        """The entries of the model."""
        return int(self._open().theta.size)

    def _open(self) -> fedlink.Server:
        if self.server is None:
            raise RuntimeError("no run has begun: call start")
        return self.server


#: Outcomes of a scheduled node that has sent nothing.
FAILED_TO_SEND = (Outcome.ABSENT, Outcome.FAILED, Outcome.LOST_UPDATE)


class _Reference(UpdateAwareStrategy):
    """Every node is scheduled, and its update arrives whole."""

    #: Whether the links are those that carry everything yet, and not those of the configuration.
    _carries_all = False

    def __init__(
        self,
        policy: Any = None,
        k: int | None = None,
        *,
        compressor: Any = None,
        fading: Any = None,
        **options: Any,
    ) -> None:
        super().__init__("bc", 1, **options)
        self._carries_all = True
        # Nothing of the configured radio is left: no units, cell, estimates or losses.
        self._config = {
            section: keys
            for section, keys in self.config.items()
            if section not in ("radio", "cell", "clock", "energy")
        }
        # Equal links that carry every entry of every update: 33 bits for each, over links of one bit a
        # symbol.
        self._settings |= {
            "schedule.k": self.devices,
            "compress.scheme": "random-sparse",
            "compress.feedback": "off",
            "compress.budget": "formula",
            "radio.fading": "static",
            "radio.mean_gains": "",
            "radio.power": 1.0,
            "radio.noise": 1.0,
        }
        self.uplink = SimulatedUplink(self.devices)
        self._parts["policy"] = "bc"
        self.config = self._resolved()
        self.policy, self.k = "reference", self.devices

    def _new_server(
        self, theta: protocol.Update, rounds: int | None = None, layers: Sequence[Sequence[int]] = ()
    ) -> fedlink.Server:
        if self._carries_all:
            self._settings["radio.symbols"] = 40 * max(theta.size, 2) * self._settings["schedule.k"]
        return super()._new_server(theta, rounds, layers)


def _judge(node: NodeRecord, arrival: str) -> None:
    """Notes how the server handled a node's upload; of one that was lost the record has the reason
    already."""
    if arrival == "used":
        node.outcome = Outcome.SENT
    elif arrival == "silent":
        node.outcome = Outcome.SILENT
    elif arrival == "flagged":
        node.reason = f"its update contradicts its report of {node.report:g} (defense.audit)"
    elif arrival == "undecodable":
        node.reason = node.reason or "its payload cannot be read"


def _reason(reason: str) -> str:
    """The error of a node on one line, with the remedy if there is one."""
    if f"registered with name '{protocol.HELLO}'" in reason:
        return (
            "its app is still stock Flower: use fedlink.flower.UpdateAwareClientApp there in place of "
            f"ClientApp ({protocol.plain(reason)})"
        )
    return protocol.plain(reason)
