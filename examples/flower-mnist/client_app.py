"""The client app of a node."""

from flwr.app import Context, Message
from flwr.clientapp.mod import message_size_mod
from task import system

from fedlink.flower import UpdateAwareClientApp, update_reply

# The mod logs the bytes of every message: a report is a few numbers, and only the scheduled send more.
app = UpdateAwareClientApp(mods=[message_size_mod])


@app.train()
def train(message: Message, context: Context) -> Message:
    theta = message.content["arrays"]["theta"].numpy()
    server_round = message.content["config"]["server-round"]
    device = context.node_config["partition-id"]
    task = system(context.run_config)
    update, loss = task.train(theta, server_round - 1, device)
    return update_reply(message, update, loss, examples=task.samples(device))
