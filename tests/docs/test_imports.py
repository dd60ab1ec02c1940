"""Imports within the package point one way: no circle, and nothing in the core reaches outside."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src"
CYTHON = re.compile(r"^[ ]*(?:from[ ]+([\w.]+)[ ]+c?import[ ]+(.*)|c?import[ ]+([\w.]+))", re.M)


def name_of(path):
    """The module's name; that of a package for its __init__, .py, .pyi, .pyx and .pxd alike."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# the package's own stub says what it imports on demand
FILES = [*ROOT.rglob("fastkam/**/*.py"), ROOT / "fastkam/__init__.pyi",
         *ROOT.rglob("fastkam/**/*.pyx"), *ROOT.rglob("fastkam/**/*.pxd")]
MODULES = {name_of(path) for path in FILES}


def module_of(module, name=""):
    """The module of ours from which ``from module import name`` takes something, or None."""
    for full in (f"{module}.{name}", module):
        if full in MODULES:
            return full
    return None


class Imports(ast.NodeVisitor):
    """The modules of ours that a Python file imports, within functions too."""

    def __init__(self, package):
        self.package, self.found = package, set()

    def visit_If(self, node):
        """Nothing under TYPE_CHECKING, which does not run."""
        if ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
        elif ast.unparse(node.test) == "not TYPE_CHECKING":
            node.orelse = []
        self.generic_visit(node)

    def visit_Import(self, node):
        self.found |= {module_of(alias.name) for alias in node.names}

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level:
            parts = self.package.split(".")
            parts = parts[: len(parts) - node.level + 1]
            module = ".".join([*parts, module] if module else parts)
        self.found |= {module_of(module, alias.name) for alias in node.names}


def imports(path):
    """The modules of ours that a file imports."""
    text = path.read_text()
    if path.suffix in (".py", ".pyi"):
        name = name_of(path)
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        visitor = Imports(package)
        visitor.visit(ast.parse(text))
        return visitor.found - {None}
    found = set()
    for module, names, alone in CYTHON.findall(re.sub(r"\(\s*([^)]*)\)", r"\1", text)):
        listed = [name.split()[0] for name in re.split(r",\s*", names) if name.strip()]
        found |= {module_of(module or alone, name) for name in listed or [""]}
    return found - {None}


def graph():
    """{module: the modules of ours that it imports}"""
    arrows = {}
    for path in FILES:
        arrows.setdefault(name_of(path), set()).update(imports(path) - {name_of(path)})
    return arrows


def test_no_circle():
    arrows = graph()
    assert sum(map(len, arrows.values())) > 300
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_the_core_imports_nothing_outside_itself():
    """The core needs only the public declarations of a target."""
    outside = {
        (name, other) for name, others in graph().items() if name.startswith("fastkam._core")
        for other in others if not other.startswith("fastkam._core")}
    assert {other for _, other in outside} <= {"fastkam.target", "fastkam.include.fastkam.target"}


# imports within functions, file by file, each for one of these reasons; none breaks a circle
COMMAND = "a command loads the parts that it needs"
PACKAGE = "it imports another package, such as numba or pymc"
RARE = "few runs need it, and its import takes long"
LATE = {
    "beginning.py": (1, RARE),
    "cli/ending.py": (2, COMMAND),
    "cli/main.py": (6, COMMAND),
    "cli/options.py": (3, COMMAND),
    "density/estimator.py": (1, PACKAGE),
    "density/target.py": (1, PACKAGE),
    "interop/doors.py": (3, PACKAGE),
    "interop/pymc_graph.py": (2, PACKAGE),
    "kernels.py": (5, RARE),
    "outputs.py": (6, PACKAGE),
    "plots/style.py": (1, PACKAGE),
    "points/desk.py": (5, RARE),
    "problem/given.py": (4, RARE),
    "run/checkpoint.py": (1, PACKAGE),
    "run/drive.py": (3, RARE),
    "run/workers.py": (2, RARE),
    "search/choice.py": (1, RARE),
    "targets/__init__.py": (1, RARE),
}


def late_imports(path):
    """The statements within functions of a Python file that import modules of ours."""
    found = set()
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                names = ([alias.name for alias in node.names] if isinstance(node, ast.Import)
                         else [node.module or "."] if isinstance(node, ast.ImportFrom) else [])
                if any(name.partition(".")[0] in ("fastkam", "") for name in names):
                    found.add(node.lineno)
    return found


def test_imports_within_functions_are_counted():
    """A new one needs a reason; `LATE` lists them all."""
    folder = ROOT / "fastkam"
    found = {path.relative_to(folder).as_posix(): len(lines)
             for path in folder.rglob("*.py") if (lines := late_imports(path))}
    assert found == {name: n for name, (n, _) in LATE.items()}
    assert all(reason in (COMMAND, PACKAGE, RARE) for _, reason in LATE.values())


def test_imports_within_functions_are_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import fastkam\n\ndef f():\n    from . import stop\n    import numpy\n"
                    "    def g():\n        import fastkam.plots\n")
    assert late_imports(path) == {4, 7}


def test_imports_are_found(tmp_path, monkeypatch):
    """The test sees imports in functions, relative ones, and those of Cython."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "fastkam").mkdir()
    lazy, typed, cython = (tmp_path / "fastkam" / name for name in ("a.py", "b.py", "c.pyx"))
    lazy.write_text("def f():\n    from . import stop\n    from fastkam.run import loop\n")
    typed.write_text("if TYPE_CHECKING:\n    import fastkam.stop\n"
                     "else:\n    import fastkam.linalg\n")
    cython.write_text("from fastkam._core.engine.rng cimport (\n    normals,\n)\n"
                      "import fastkam.plots\n"
                      "def f():\n    from fastkam import kernels\n")
    assert imports(lazy) == {"fastkam.stop", "fastkam.run.loop"}
    assert imports(typed) == {"fastkam.linalg"}
    assert imports(cython) == {"fastkam._core.engine.rng", "fastkam.plots", "fastkam.kernels"}


def test_files_of_tests_have_different_names():
    """Pytest imports them by name, without their folder."""
    names = sorted(path.name for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert names == sorted(set(names))
