"""Nothing of the library but the port knows of CUDA, so all else runs on the simulated device too.

What counts is code: names, attributes, arguments and the strings that are given to calls. Texts for
readers may name `CudaStorage`, and the storage of that name may name the port.
"""

import ast
import re
from pathlib import Path

import forebay
import pytest

LIBRARY = Path(forebay.__file__).parent
PORT = "_cuda.py"
ALLOWED = {
    "__init__.py": {"forebay._cuda_storage", "CudaStorage"},
    "_cuda_storage.py": {"forebay._cuda", "CudaStreams", "CudaStorage", "cuda"},
}
"""The names that other files may have: of the class, its module, and the default of its device."""
TORCHS_OWN = re.compile(
    r"cuda|nccl|is_pinned|pin_memory|record_stream|non_blocking|current_stream|ipc_|accelerator"
    r"|reduce_tensor|^torch\.(Stream|Event)$",
    re.IGNORECASE,
)


def mentioned(text: str) -> set[str]:
    """Return the names and strings of a module's code that are about CUDA."""
    found: set[str] = set()
    tree = ast.parse(text)
    prose = {
        id(node)
        for parent in ast.walk(tree)
        for node in ast.iter_child_nodes(parent)
        if isinstance(parent, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found |= {node.attr, ast.unparse(node)}
        elif isinstance(node, ast.arg | ast.keyword):
            found.add(node.arg or "")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found |= {node.name, node.asname or ""}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Constant) and id(node) not in prose:
            found |= (
                {node.value} if isinstance(node.value, str) and " " not in node.value else set()
            )
    return {name for name in found if TORCHS_OWN.search(name)}


FILES = sorted(file for file in LIBRARY.glob("*.py") if file.name != PORT)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_outside_the_port_mentions_cuda(file: Path) -> None:
    found = mentioned(file.read_text(encoding="utf-8"))
    assert found <= ALLOWED.get(file.name, set())


@pytest.mark.parametrize(
    "text",
    [
        "import torch.cuda",
        "from torch import cuda as gpu",
        "tensor.is_cuda",
        "tensor.to('cuda')",
        "torch.empty(3, pin_memory=True)",
        "tensor.record_stream(stream)",
        "target.copy_(source, non_blocking=True)",
        "from forebay._cuda import CudaStreams",
        "torch.device(f'cuda:{number}')",
        "torch.device('cuda:' + number)",
        "async def to_cuda(): pass",
        "torch.Stream()",
        "torch.accelerator.synchronize()",
        "from torch.multiprocessing.reductions import reduce_tensor",
    ],
)
def test_a_mention_is_found(text: str) -> None:
    assert mentioned(text)


def test_the_port_is_where_it_is_mentioned() -> None:
    assert {"cuda", "record_stream", "pin_memory"} <= mentioned(
        (LIBRARY / PORT).read_text(encoding="utf-8")
    )
