"""The keys of devices: only the holder of its key is a device."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
    load_ssh_public_key,
)

#: Public keys by device: a path, or the text of a key in OpenSSH's form or PEM.
Keys = Mapping[int, "str | os.PathLike[str]"]


def fingerprint(key: bytes) -> str:
    """The SHA-256 of a public key, in hexadecimal; of a key in OpenSSH's form or PEM."""
    try:
        known = load_ssh_public_key(key) if key.lstrip()[:4] != b"----" else load_pem_public_key(key)
    except Exception as problem:
        raise ValueError(f"it is no public key in OpenSSH's form or PEM: {problem}") from problem
    return hashlib.sha256(known.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@dataclass
class Identities:
    """The fingerprint of the key of every device.

    With a table, a device is the node that has its key. With ``"first-come"``, the first node that is a
    device binds it to its key. Without either, the latest node that says it is a device takes its place.
    """

    #: Whether devices are bound to keys.
    binds: bool = False
    #: Whether a device without a key is bound to that of its first node.
    first_come: bool = False
    #: The fingerprints by device.
    of_device: dict[int, str] = field(default_factory=dict)

    @classmethod
    def read(cls, keys: Keys | Literal["first-come"] | None, devices: int) -> Identities:
        """The argument ``keys`` of the strategy, checked."""
        if keys is None:
            return cls()
        if isinstance(keys, str):
            if keys == "first-come":
                return cls(binds=True, first_come=True)
            raise ValueError(f'keys must be "first-come" or a table of public keys by device, not {keys!r}')
        found: dict[int, str] = {}
        for device, given in keys.items():
            if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < devices:
                raise ValueError(f"keys: there is no device {device!r}; devices are 0 to {devices - 1}")
            text = os.fspath(given)
            is_text = text.startswith(("ssh-", "ecdsa-", "----"))
            try:
                one = fingerprint(text.encode() if is_text else Path(text).read_bytes())
            except ValueError as problem:
                raise ValueError(f"keys: device {device}: {problem}") from problem
            if one in found.values():
                raise ValueError(f"keys: device {device} has the key of another device")
            found[device] = one
        return cls(binds=True, of_device=found)

    def admit(self, device: int, key: bytes) -> str | None:
        """Binds a device to the key of a node; the reason if the node cannot be this device."""
        if not self.binds:
            return None
        if not key:
            return "the SuperLink knows no key of it, and devices are bound to keys (keys=…)"
        try:
            claimed = fingerprint(key)
        except ValueError as problem:
            return f"its key cannot be read: {problem}"
        bound = self.of_device.get(device)
        if bound is None and self.first_come:
            other = next((m for m, known in self.of_device.items() if known == claimed), None)
            if other is not None:
                return (
                    f"its key {claimed[:12]} is that of device {other}, and it claims to be device {device}"
                )
            self.of_device[device] = claimed
            return None
        if bound is None:
            return f"the table of keys has no device {device}"
        if bound != claimed:
            return (
                f"device {device} is bound to the key {bound[:12]}, and this node has the key {claimed[:12]}"
            )
        return None
