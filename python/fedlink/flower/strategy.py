"""The side of the server."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from logging import INFO, WARNING
from time import monotonic
from typing import Any, Literal, NoReturn

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result
from flwr.supercore import log

import fedlink
from fedlink._config import Config
from fedlink._server import checked

from . import protocol
from .exchange import Exchange, Limits, reason_of
from .folder import Folder
from .grid import WatchedGrid
from .identity import Identities, Keys
from .meeting import Meeting
from .metrics import alike
from .nodes import Nodes
from .protocol import METRICS
from .record import Outcome, RoundRecord
from .round import Federation, Round, judge
from .uplink import SimulatedUplink, Uplink

#: Arguments of ``FedAvg`` that a policy decides here.
NOT_OURS = ("fraction_train", "min_train_nodes")

#: The metrics of a node that are not aggregated.
LEFT_OUT = "round %d, %s: its metrics are left out: %s"

#: The worth of each report: a node may send a false one.
TRUST = {
    "norm": "the norm is a claim; the audit finds one that contradicts the update that is sent, and no other",
    "compressed-norm": "the norm after compression is checked against the sent update (defense.audit)",
    "loss": "the training loss is a claim that cannot be checked",
    "rms-loss": "the training loss is a claim that cannot be checked",
}

#: Updates with a smaller part of the model's entries are worth a warning.
TINY = 1e-3

#: A loss so many times that of the first evaluation (or 1, if that is more) stops the run.
EXPLODES = 1000.0


class Diverged(RuntimeError):
    """The loss of the server's evaluation is not finite, or far above that of the first evaluation."""


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
        self.substitute = substitute
        #: The outcome of every node, round by round; of a run that was resumed, the rounds since.
        self.records: list[RoundRecord] = []
        #: The server of the run: its tables, digest and model.
        self.server: fedlink.Server | None = None
        self._folder = None if records is None else Folder(records, resume)
        self._arrays = ArrayRecord()
        #: The nodes that the run has met.
        self.nodes = Nodes(self.devices, self.uplink.declared, Identities.read(keys, self.devices))
        limits = Limits(hello_timeout, compute_timeout, upload_timeout, evaluate_timeout, start_timeout)
        self._exchange = Exchange(self.nodes, limits)
        self._meeting = Meeting(self._exchange, wanted, self._folder)
        self._federation: Federation | None = None
        self._round: Round | None = None
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
        # It is this class with other settings.
        from .reference import Reference

        return Reference(*arguments, **options)

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
        self._exchange.timeout = timeout
        server = self._begin(initial_arrays, num_rounds).server
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

        watched = WatchedGrid(grid, self.nodes.label, self._exchange.limit)
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

    def _begin(self, arrays: ArrayRecord, rounds: int | None = None) -> Federation:
        """A new server from these arrays, or that of the run that was stopped."""
        layers = protocol.layers_of(arrays)
        self.server = server = self._new_server(protocol.theta_of(arrays), rounds, layers)
        self._arrays, self.records, self._round = arrays, [], None
        encoder = protocol.encoder_config(self.config, layers)
        self._federation = Federation(
            server, self.uplink, self._exchange, self.config, encoder, self.weighted_by_key
        )
        for ask in server.asks:
            log(INFO, "reports: %s", TRUST[ask])
        if self._folder is not None:
            self._folder.begin(server)
            self._folder.restore_keys(self.nodes.identities)
        return self._federation

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Runs the first phase, has the server schedule, and gives the messages of the second."""
        federation = self._federation or self._begin(arrays)
        server = federation.server
        if not protocol.holds(arrays, server.theta):
            raise ValueError(
                "the model is not the one that the last round left: the server keeps it from round to round"
            )
        record = RoundRecord(server.rounds_done + 1)
        this = self._round = Round(federation, record, monotonic(), grid)
        self.records.append(record)
        node_of = self._meeting.meet(grid, record, first=len(self.records) == 1)
        config["server-round"] = record.round
        this.compute({self.arrayrecord_key: arrays, self.configrecord_key: config}, node_of)
        self._meeting.check_hope(node_of, record)
        this.select()
        scheduled = [node.device for node, _ in this.uploads]
        log(
            INFO,
            "configure_train: %d of %d nodes are to send: devices %s",
            len(scheduled),
            len(node_of),
            scheduled,
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
        uploads = this.read_uploads(this.uploads, replies)
        if self.substitute:
            uploads += this.substitutes()
        record.trained = len(this.reported)
        reported = this.reported.items()
        losses = {device: node.train_loss for device, node in reported if node.train_loss is not None}
        if losses and len(losses) == len(this.reported):
            record.train_loss = server.mean_loss(losses)
        excluded = set(server.excluded)
        arrivals = server.deliver(uploads, record.trained, record.train_loss or 0.0)
        for device, arrival in zip(this.schedule, arrivals):
            judge(this.reported[device], arrival)
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
                problems[node_id] = reason_of(reply.error.reason or f"error {reply.error.code}")
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
