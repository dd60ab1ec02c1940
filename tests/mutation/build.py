"""One build of fastkam that has all chosen mutants in it, in an environment of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from mutation.choice import choose, language
from mutation.operators import Mutant

HERE = Path(__file__).resolve().parent
IN_C = re.compile(r"error:.*\n.*?fk_mutated\((\d+)\)")      # a compiler's message with its line
IN_CYTHON = re.compile(r"/(src/fastkam/\S+?):(\d+):\d+: ")


class Build:
    """The folder `work`: the changed copy, what meson makes of it, and an environment.

    Attributes
    ----------
    python : Path
        The interpreter whose fastkam has the mutants.
    mutants : list of Mutant
        Those chosen when the folder was made; the number of a mutant is its place, from 1.
    """

    def __init__(self, root, work, n, seed, places=()):
        self.root, self.work = root.resolve(), work.resolve()
        self.source, self.build = self.work / "source", self.work / "build"
        self.table = self.work / "mutants.json"
        self.environment = self.work / "environment"
        self.python = self.environment / "bin" / "python"
        if self.table.exists():
            known = json.loads(self.table.read_text())
            self.mutants = [Mutant(*mutant) for mutant in known["mutants"]]
            self.refused, self.lines = set(known["refused"]), known["lines"]
        else:
            self.mutants, self.refused = choose(self.root, n, seed, places), set()
            self.lines = [self.line(mutant) for mutant in self.mutants]

    def make(self):
        """Make it all, unless an earlier call has."""
        if (self.work / "made").exists():
            return
        self.work.mkdir(parents=True, exist_ok=True)
        self.write_table()
        self.copy_sources()
        self.make_environment()
        self.compile()
        (self.work / "made").touch()

    def write_table(self):
        """Write down the mutants, for later calls and for Cython."""
        self.table.write_text(json.dumps({"root": str(self.source), "mutants": self.mutants,
                                          "refused": sorted(self.refused), "lines": self.lines}))

    def line(self, mutant):
        """Return the line of code that a mutant changes."""
        text = (self.root / mutant.file).read_text(encoding="utf-8")
        return text.split("\n")[mutant.line - 1].strip()

    def numbers(self):
        """Return the numbers of the mutants that are put in."""
        return {mutant: k for k, mutant in enumerate(self.mutants, 1) if k not in self.refused}

    def copy_sources(self):
        """Copy what git knows, and put in the mutants."""
        if self.source.exists():
            return      # an earlier call has not come to its end: what is compiled is kept
        files = subprocess.run(
            ["git", "ls-files", "meson.*", "pyproject.toml", "README.md", "LICENSE", "src",
             "tools"],
            cwd=self.root, check=True, text=True, capture_output=True).stdout.split()
        for file in files:
            (self.source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / file, self.source / file)
        for file in {mutant.file for mutant in self.mutants}:
            self.put_mutants_in(file)

    def put_mutants_in(self, file):
        """Write a file of Python or C with its mutants; in Cython they come with translation."""
        text = (self.root / file).read_text(encoding="utf-8")
        if hasattr(language(file), "with_mutants"):
            text = language(file).with_mutants(file, text, self.numbers())
        (self.source / file).write_text(text, encoding="utf-8")

    def make_environment(self):
        """Make an environment that has the packages of this one, but not its fastkam."""
        if self.environment.exists():
            return
        venv.create(self.environment, with_pip=False, symlinks=True)
        # an editable fastkam comes with a hook in a .pth file, which is not read in this way
        (self.site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        shutil.copy(HERE / "fk_mutant.py", self.site)

    @property
    def site(self):
        """The folder of packages of the environment."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.environment)}))

    def compile(self):
        """Compile and install; mutants that are not programs are taken out again."""
        environment = self.tools()
        if not (self.build / "build.ninja").exists():
            options = {"optimization": 1, "c_args": f"-include {HERE / 'mutant.h'}",
                       "python.platlibdir": self.site, "python.purelibdir": self.site}
            run("meson", "setup", self.build, self.source,
                "--native-file", self.work / "native.ini", "--prefix", self.environment,
                *(f"-D{name}={value}" for name, value in options.items()), env=environment)
        ninja = "ninja", "-C", self.build, "-j2", "-k0"
        while said := run(*ninja, env=environment, may_fail=True):
            refused = self.refused_in(said) - self.refused
            if not refused:
                raise SystemExit(f"ninja has failed:\n{said[-20000:]}")
            self.refused |= refused
            self.write_table()
            for file in {self.mutants[k - 1].file for k in refused}:
                self.put_mutants_in(file)
        run("meson", "install", "-C", self.build, "--no-rebuild", "--quiet", env=environment)

    def tools(self):
        """Write the command that takes Cython's place; return the environment that has it."""
        cython = self.work / "cython"
        cython.write_text(
            f"#!/bin/sh\nexec env PYTHONPATH='{HERE.parent}' FASTKAM_MUTANTS='{self.table}' "
            f"'{sys.executable}' -m mutation.cython_mutants \"$@\"\n")
        cython.chmod(0o755)
        (self.work / "native.ini").write_text(
            f"[binaries]\ncython = '{cython}'\npython = '{self.python}'\n")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        cached = {"CC": "ccache cc"} if shutil.which("ccache") else {}
        return {**os.environ, **cached, "PATH": path}

    def refused_in(self, said):
        """Return the numbers of the mutants that the compilers' messages are about."""
        lines = {(file, int(line)) for file, line in IN_CYTHON.findall(said)}
        return {int(k) for k in IN_C.findall(said)} | {
            k for k, mutant in enumerate(self.mutants, 1) if (mutant.file, mutant.line) in lines
            and language(mutant.file) is language("a.pyx")}


def run(*command, env, may_fail=False):
    """Run a command; return what it has printed if it fails."""
    done = subprocess.run([str(part) for part in command], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode and not may_fail:
        raise SystemExit(f"{command[0]} has failed:\n{done.stdout[-20000:]}")
    return done.stdout if done.returncode else ""
