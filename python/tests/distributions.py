"""Installs both distributions of the package as a stranger would, each into an empty environment, and uses
them there.

``python distributions.py FOLDER``: the folder has one wheel and one source distribution. Run by ``cargo xtask
package``; it is a program and no test module, since it must not run inside an environment that has the
package.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path) -> str:
    """The output of a command; its failure is an error. It does not find the package of the repository."""
    print("  $", " ".join(str(word) for word in command), flush=True)
    elsewhere = tempfile.gettempdir()
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=elsewhere).stdout


def first_example() -> str:
    """The first program of docs/python.md."""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert found is not None, "docs/python.md has no program"
    return found.group(1)


def empty_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True, clear=True)
    return folder / "bin"


def use(bin_folder: Path) -> None:
    """Uses the package and its command."""
    version = run(bin_folder / "fedlink", "--version").strip()
    program = "import fedlink; print(f'fedlink {fedlink.__version__}')"
    inside = run(bin_folder / "python", "-c", program).strip()
    assert version == inside, f"{version!r} is not {inside!r}"
    assert "round-robin" in run(bin_folder / "fedlink", "list", "policies")
    printed = run(bin_folder / "python", "-c", first_example())
    assert "after 20 rounds, digest " in printed, printed
    print(printed, end="")


def local_index(packages: Path, folder: Path) -> str:
    """A package index in the simple form (PEP 503) of the distributions in a folder; returns its address."""
    for file in sorted(packages.iterdir()):
        name = re.sub(r"[-_.]+", "-", file.name.split("-")[0]).lower()
        entry = folder / name
        entry.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, entry / file.name)
        names = sorted(html.escape(one.name) for one in entry.iterdir() if one.name != "index.html")
        links = [f'<a href="{name}">{name}</a>' for name in names]
        (entry / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    return folder.as_uri()


def main(folder: Path) -> None:
    [wheel] = folder.glob("*.whl")
    [source] = folder.glob("*.tar.gz")
    assert "-abi3-" in wheel.name, wheel.name
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary)
        from_wheel = empty_environment(made / "wheel")
        run(from_wheel / "pip", "install", "--quiet", wheel)
        use(from_wheel)

        # With an extra, from an index that holds everything and nothing else.
        packages = made / "packages"
        run(from_wheel / "pip", "download", "--quiet", "--dest", packages, f"{wheel}[flower]")
        index = local_index(packages, made / "index")
        from_index = empty_environment(made / "flower")
        run(from_index / "pip", "install", "--quiet", "--index-url", index, "fedlink[flower]")
        run(from_index / "python", "-c", "from fedlink.flower import UpdateAwareStrategy")

        from_source = empty_environment(made / "source")
        settings = ["--config-settings", "build-args=--profile dev"]
        run(from_source / "pip", "install", "--quiet", *settings, source)
        use(from_source)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
