"""What a node does."""

from flwr.app import Context, Message
from flwr.clientapp.mod import message_size_mod
from task import system

from fedlink.flower import UpdateAwareClientApp, update_reply

# The mod logs the bytes of every message: a report is one number, and only the scheduled send more.
app = UpdateAwareClientApp(mods=[message_size_mod])


@app.train()
def train(message: Message, context: Context) -> Message:
    theta = message.content["arrays"]["theta"].numpy()
    server_round = message.content["config"]["server-round"]
    update = system(context.run_config).train(theta, server_round - 1, context.node_config["partition-id"])
    return update_reply(message, update)
