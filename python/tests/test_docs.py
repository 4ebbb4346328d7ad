"""The examples of the documentation, as printed there."""

import doctest
import re
from pathlib import Path

import numpy
import pytest

import fedlink
from fedlink import _fedlink

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["docs/python.md", "docs/adding-parts.md"])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert blocks, f"{page} shows no Python"
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize(
    "name",
    [name for name, value in vars(_fedlink).items() if callable(value) and ">>>" in (value.__doc__ or "")],
)
def test_the_example_of_a_function_holds(name):
    function = getattr(_fedlink, name)
    names = {"fedlink": fedlink, "numpy": numpy}
    test = doctest.DocTestParser().get_doctest(function.__doc__, names, name, None, None)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted and not result.failed


def test_every_public_name_has_a_docstring():
    undocumented = [
        name for name in fedlink.__all__ if not name.startswith("__") and not getattr(fedlink, name).__doc__
    ]
    assert undocumented == []


def test_the_notebook_runs(tmp_path):
    import nbclient
    import nbformat

    notebook = nbformat.read(ROOT / "examples/figure1-in-miniature.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "the figure is drawn"
