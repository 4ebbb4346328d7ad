"""The example's server, held between the phases of its first round until the test lets it continue."""

import json
import os
import time
from pathlib import Path

import server_app

from fedlink.flower import UpdateAwareStrategy


class Held(UpdateAwareStrategy):
    def configure_train(self, server_round, arrays, config, grid):
        messages = super().configure_train(server_round, arrays, config, grid)
        if server_round == 1:
            folder = Path(os.environ["FEDLINK_TEST_HOLD"])
            (folder / "partial").write_text(json.dumps([node.device for node in self.records[0].scheduled]))
            (folder / "partial").rename(folder / "scheduled.json")
            deadline = time.monotonic() + 600
            while not (folder / "go-on").exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("nobody let the server continue")
                time.sleep(0.1)
        return messages


server_app.UpdateAwareStrategy = Held
app = server_app.app
