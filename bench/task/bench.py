"""Times stretches of rounds of a PyTorch task by a bare loop and through `fedlink.simulate`, in turn, in one
process, each with worker processes of its own that are started before the first stretch.

    python bench.py --workers 2 --rounds 20 --repetitions 5
"""

import argparse
import json
import platform
from time import perf_counter

import work
import torch

from bare import Loop


def main():
    import fedlink
    import fedlink.torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.workers)
    sets, test = work.data(0)
    shared = {"run.rounds": options.rounds, "run.evaluate_every": options.rounds, "data.devices": len(sets)}
    # All devices, every entry: the budget of the worst channel still holds 33 bits for each of d.
    fedavg = {
        "schedule.policy": "bc",
        "schedule.k": len(sets),
        "radio.symbols": 1e12,
        "compress.scheme": "random-sparse",
    }
    bn2c = {"schedule.policy": "bn2-c", "schedule.k": 1, "radio.symbols": 5000}
    loop = Loop(sets, options.workers)
    with fedlink.torch.Task(work.model, sets, work.train, test, workers=options.workers) as task:

        def simulate(config, seed):
            result = fedlink.simulate({**shared, **config, "run.seed": seed}, task=task, progress=False)
            return result.summary["final_accuracy"]

        programs = {
            "bare": lambda seed: loop.run(options.rounds, seed, test),
            "fedavg": lambda seed: simulate(fedavg, seed),
            "bn2-c": lambda seed: simulate(bn2c, seed),
        }
        seconds, accuracies = {name: [] for name in programs}, {name: [] for name in programs}
        for repetition in range(options.repetitions + 1):
            for name, run in programs.items():
                start = perf_counter()
                accuracy = run(repetition)
                # The first stretch of each waits for its processes and is not counted.
                if repetition > 0:
                    seconds[name].append(perf_counter() - start)
                    accuracies[name].append(accuracy)
    loop.end()
    line = {
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "workers": options.workers,
        "rounds": options.rounds,
        "seconds": seconds,
        "accuracies": accuracies,
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
