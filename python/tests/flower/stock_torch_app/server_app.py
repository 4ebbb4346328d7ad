"""The server app."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from task import Net, accuracy

app = ServerApp()


def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    model = Net()
    model.load_state_dict(arrays.to_torch_state_dict())
    return MetricRecord({"accuracy": accuracy(model)})


@app.main()
def main(grid: Grid, context: Context) -> None:
    run = context.run_config
    torch.manual_seed(0)
    strategy = FedAvg(fraction_train=1.0)
    result = strategy.start(
        grid,
        ArrayRecord(Net().state_dict()),
        num_rounds=run["rounds"],
        timeout=run["timeout"],
        evaluate_fn=evaluate,
    )
    if run["out"]:
        save(Path(run["out"]), result, getattr(strategy, "records", []))


def save(folder: Path, result, records) -> None:
    """Leaves accuracies, records and counters in `result.json`, complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = {
        "accuracy": {
            number: metrics["accuracy"] for number, metrics in result.evaluate_metrics_serverapp.items()
        },
        "rounds": [asdict(record) for record in records],
        "counter": int(result.arrays["norm.num_batches_tracked"].numpy()),
    }
    (folder / "partial.json").write_text(json.dumps(summary))
    (folder / "partial.json").rename(folder / "result.json")
