"""The server app."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from task import config, system

from fedlink.flower import UpdateAwareStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    run = context.run_config
    task = system(run)

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        accuracy, loss = task.evaluate(arrays["theta"].numpy())
        return MetricRecord({"accuracy": accuracy, "loss": loss})

    records = Path(run["out"]) / "records" if run["out"] else None
    kind = UpdateAwareStrategy.reference if run["reference"] else UpdateAwareStrategy
    strategy = kind(config=config(run), records=records, resume=run["resume"])
    result = strategy.start(
        grid,
        ArrayRecord({"theta": Array(task.theta0())}),
        num_rounds=run["rounds"],
        timeout=run["timeout"],
        evaluate_fn=evaluate,
    )
    if run["out"]:
        save(Path(run["out"]), result, strategy)


def save(folder: Path, result, strategy: UpdateAwareStrategy) -> None:
    """Leaves θ(T) in `theta.npy` and the rest in `result.json`, each complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    accuracies = {
        number: metrics["accuracy"] for number, metrics in result.evaluate_metrics_serverapp.items()
    }
    rounds = [asdict(record) for record in strategy.records]
    summary = {"accuracy": accuracies, "rounds": rounds, "digest": strategy.server.digest}
    np.save(folder / "partial.npy", result.arrays["theta"].numpy())
    (folder / "partial.npy").rename(folder / "theta.npy")
    (folder / "partial.json").write_text(json.dumps(summary, indent=1))
    (folder / "partial.json").rename(folder / "result.json")
