"""The side of the server."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from logging import INFO, WARNING
from time import monotonic, sleep
from typing import Any, NoReturn

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result
from flwr.serverapp.strategy.strategy_utils import validate_message_reply_consistency
from flwr.supercore import log

import fedlink
from fedlink._config import Config
from fedlink._server import checked

from . import protocol
from .folder import Folder
from .grid import REMIND_EVERY, WatchedGrid
from .protocol import KEY, METRICS, ProtocolError
from .record import NodeRecord, Outcome, RoundRecord
from .uplink import SimulatedUplink, Uplink

#: Errors of a reply that mean: the node is gone.
GONE = (ErrorCode.NODE_UNAVAILABLE, ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE)

#: Arguments of ``FedAvg`` that a policy decides here.
NOT_OURS = ("fraction_train", "min_train_nodes")

#: fedlink's part of a node's reply.
Answer = dict[str, object]

#: A request to a node, and the record of its outcome.
Asked = tuple[NodeRecord, Message]


class NobodyTakesPart(RuntimeError):
    """There is no node that could take part in the run."""


@dataclass
class _Round:
    """A round between its two phases."""

    record: RoundRecord
    begun: float
    #: The nodes that trained and reported, by device, in the policy's order.
    reported: dict[int, NodeRecord] = field(default_factory=dict)
    #: The metrics of their training.
    metrics: list[MetricRecord] = field(default_factory=list)
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

    The first round begins when ``min_available_nodes`` are there (all devices, if not given); later ones with
    the nodes that are there. The first phase waits ``compute_timeout`` seconds for its answers, evaluation by
    the nodes ``evaluate_timeout``, and every phase without a limit of its own the ``timeout`` of
    :meth:`start`. Nodes that do not answer, fail or send impossible values are left out: :attr:`records` and
    the metrics of the round record these nodes and the reasons. If no node can take part, the run ends with
    :class:`NobodyTakesPart`.

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
        compute_timeout: float | None = None,
        evaluate_timeout: float | None = None,
        min_available_nodes: int | None = None,
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
        self.compute_timeout, self.evaluate_timeout = compute_timeout, evaluate_timeout
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
        # In the order of acquaintance: of two nodes that are one device, the later is the restarted one.
        self._device_of: dict[int, int] = {}
        self._rates: dict[int, float] = {}
        self._evaluates: set[int] = set()
        #: The last problem of each node; a node that has taken part since is not in it.
        self._problems: dict[int, str] = {}
        self._round: _Round | None = None
        self._reports: dict[int, list[float]] = {}

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

        watched = WatchedGrid(grid, self._label, self._limit)
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
        if self._folder is not None:
            self._folder.begin(server)
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
        arrivals = server.deliver(uploads, record.trained, record.train_loss or 0.0)
        for device, arrival in zip(this.schedule, arrivals):
            _judge(this.reported[device], arrival)
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
        if this.metrics:
            if not any(self.weighted_by_key in one for one in this.metrics):
                # No node reports the weight of its metrics: their weights are equal.
                for one in this.metrics:
                    one[self.weighted_by_key] = 1
            replied = [RecordDict({METRICS: one}) for one in this.metrics]
            validate_message_reply_consistency(replied, self.weighted_by_key, check_arrayrecord=False)
            metrics.update(self.train_metrics_aggr_fn(replied, self.weighted_by_key))
        return protocol.model_of(server.theta, self._arrays), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Requests for the nodes that are there and have an evaluation function."""
        there = set(grid.get_node_ids())
        able = [node for node, device in self._nodes().items() if node in there and node in self._evaluates]
        if self.fraction_evaluate == 0.0 or not able:
            return []
        count = min(len(able), max(int(len(able) * self.fraction_evaluate), self.min_evaluate_nodes))
        config["server-round"] = server_round if self.server is None else self.server.rounds_done
        log(INFO, "configure_evaluate: %d of %d nodes", count, len(able))
        content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        chosen = sorted(random.sample(able, count))
        return [Message(content, node_id, MessageType.EVALUATE) for node_id in chosen]

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
        if "accuracy" in numbers:
            server.evaluated(numbers.pop("accuracy"), numbers.pop("loss", float("nan")), numbers)
        if self._folder is not None:
            self._folder.evaluated(server, self.records[-1])

    # Nodes.

    def _nodes(self) -> dict[int, int]:
        """The device of every node; of two nodes that are one device, the later."""
        latest = {device: node for node, device in self._device_of.items()}
        return {node: device for device, node in latest.items()}

    def _label(self, node_id: int) -> str:
        device = self._device_of.get(node_id)
        return f"node {node_id}" if device is None else f"device {device}"

    def _limit(self, message_type: str, timeout: float | None) -> float | None:
        """The seconds to wait for a type of message if the caller passes ``timeout``."""
        own = self.evaluate_timeout if message_type.startswith(MessageType.EVALUATE) else None
        return timeout if own is None else own

    def _meet(self, grid: Grid, record: RoundRecord) -> dict[int, int]:
        """Waits for nodes, requests the device numbers of new ones, and returns the node of every device that
        is there."""
        needed = self.min_available_nodes if len(self.records) == 1 else 1
        begun = reminded = monotonic()
        while len(present := list(grid.get_node_ids())) < needed:
            now = monotonic()
            if len(self.records) > 1 and self._timeout is not None and now - begun > self._timeout:
                raise NobodyTakesPart(f"all nodes are gone, and none came back within {self._timeout:.0f} s")
            if now - reminded >= REMIND_EVERY or reminded == begun:
                reminded = now
                log(
                    INFO,
                    "Waiting for nodes to connect: %d connected (minimum required: %d).",
                    len(present),
                    needed,
                )
            sleep(1)
        content = RecordDict({KEY: protocol.request(declared=self.uplink.declared)})
        asked = [
            (NodeRecord(node_id, None, "hello"), Message(content, node_id, f"query.{protocol.HELLO}"))
            for node_id in sorted(set(present) - self._device_of.keys())
        ]
        for (node, _), answer in zip(asked, self._ask(grid, asked)):
            if answer is None or not self._introduce(node, answer):
                record.nodes.append(node)
                self._problems[node.node_id] = f"node {node.node_id}: {node.reason}"
        there = set(present)
        self._problems = {node: problem for node, problem in self._problems.items() if node in there}
        node_of = {device: node_id for node_id, device in self._nodes().items() if node_id in there}
        if not node_of:
            raise NobodyTakesPart("no node can take part:\n" + "\n".join(self._problems.values()))
        return node_of

    def _introduce(self, node: NodeRecord, answer: Answer) -> bool:
        try:
            protocol.check_version(answer, "the node")
            device = protocol.whole(answer, "device", -1, self.devices - 1)
            rate = protocol.real(answer, "rate", above=0.0) if self.uplink.declared else 0.0
        except ProtocolError as problem:
            node.outcome, node.reason = Outcome.REJECTED, f"{problem}"
            return False
        if device < 0:
            taken = set(self._device_of.values())
            device = next(number for number in range(len(taken) + 1) if number not in taken)
            if device >= self.devices:
                node.outcome = Outcome.REJECTED
                node.reason = f"it has no partition-id, and all {self.devices} devices are taken"
                return False
        if device in self._device_of.values():
            log(WARNING, "node %d takes the place of device %d", node.node_id, device)
        self._device_of[node.node_id] = device
        self._rates[device] = rate
        if answer.get("evaluates"):
            self._evaluates.add(node.node_id)
        self._problems.pop(node.node_id, None)
        return True

    def _check_hope(self, node_of: dict[int, int], record: RoundRecord) -> None:
        """Stops a run in which every node that is there has failed."""
        for node in record.nodes:
            if node.outcome in (Outcome.FAILED, Outcome.REJECTED):
                self._problems[node.node_id] = f"{self._label(node.node_id)}: {node.reason}"
            elif node.outcome is Outcome.NOT_SCHEDULED:
                self._problems.pop(node.node_id, None)
        if all(node_id in self._problems for node_id in node_of.values()):
            raise NobodyTakesPart("every node failed:\n" + "\n".join(self._problems.values()))

    def _ask(self, grid: Grid, asked: list[Asked]) -> list[Answer | None]:
        """Sends messages and waits for the answers."""
        if not asked:
            return []
        timeout = self._timeout if self.compute_timeout is None else self.compute_timeout
        return self._answers(
            asked, grid.send_and_receive([message for _, message in asked], timeout=timeout), grid
        )

    @staticmethod
    def _answers(asked: list[Asked], replies: Iterable[Message], grid: Grid | None) -> list[Answer | None]:
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
            answer = None
            if reply is None:
                node.outcome, node.reason = Outcome.ABSENT, "no answer in time"
            elif reply.has_error():
                node.outcome = Outcome.ABSENT if reply.error.code in GONE else Outcome.FAILED
                node.reason = _reason(reply.error.reason or f"error {reply.error.code}")
            elif reply.metadata.src_node_id != node.node_id:
                node.outcome, node.reason = (
                    Outcome.REJECTED,
                    f"node {reply.metadata.src_node_id} answered for it",
                )
            else:
                node.up_bytes += protocol.size_of(reply)
                answer = protocol.record_of(reply)
            answers.append(answer)
        return answers

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
            gains, capacities = self.uplink.links(self._rates)
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
            asked[device] = node, Message(content, node.node_id, f"train.{protocol.COMPUTE}")
        this.record.nodes.extend(node for node, _ in asked.values())
        messages = [message for _, message in asked.values()]
        timeout = self._timeout if self.compute_timeout is None else self.compute_timeout
        replies = list(grid.send_and_receive(messages, timeout=timeout)) if messages else []
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
                this.metrics.append(metrics)

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
            self._rates[node.device] = rate

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
            links["gains"], links["capacities"] = self.uplink.links(self._rates)
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
            encoder=self._encoder,
        )
        return node, Message(RecordDict({KEY: request}), node.node_id, f"train.{protocol.UPLOAD}")

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
            node.reason = f"it was restarted between the phases; the update it has is {answer['lost']}"
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
    """The meaning of a node's error."""
    if f"registered with name '{protocol.HELLO}'" in reason:
        return (
            "its app is still stock Flower: use fedlink.flower.UpdateAwareClientApp there in place of "
            f"ClientApp ({reason.strip()})"
        )
    return reason
