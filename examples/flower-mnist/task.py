"""The task: softmax regression on digits, with fedlink's training."""

import fedlink


def config(run: dict) -> dict:
    """fedlink's configuration by that of the run. With it, `fedlink.simulate` computes the same run in one
    process."""
    return {
        "data": {
            "dataset": run["dataset"],
            "devices": run["devices"],
            "samples_per_device": run["samples-per-device"],
        },
        "learn": {
            "model": "softmax",
            "optimizer": "sgd",
            "rate": run["learning-rate"],
            "local_steps": run["local-steps"],
            # A node's update depends on the model that it receives, not on earlier rounds.
            "state": "reset",
        },
        "radio": {"symbols": run["symbols"]},
        "schedule": {"policy": run["policy"], "k": run["k"]},
        "compress": {"scheme": run["scheme"], "budget": run["budget"]},
        # Flower evaluates after every round.
        "run": {"rounds": run["rounds"], "seed": run["seed"], "evaluate_every": 1},
    }


def system(run: dict) -> fedlink.System:
    """The data and the training of all devices; a node uses its own part."""
    return fedlink.System(config(run))
