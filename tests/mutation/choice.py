"""Choice of the files with mutants, and of the mutants that are tried."""

import random
import subprocess
from pathlib import Path

from mutation import c_mutants, cython_mutants, python_mutants

# what a chain does, and what is written to files
FOLDERS = ("_core/samplers", "_core/engine", "_core/kam", "_core/linalg", "_core/numerics",
           "run", "samplers")
FILES = ("diagnosed.py", "headers.py", "parameters.py", "result.py", "schedules.py", "stop.py")
LANGUAGES = {".py": python_mutants, ".pyx": cython_mutants, ".pxd": cython_mutants,
             ".c": c_mutants, ".h": c_mutants}


def sources(root, places=()):
    """Return the files under test, relative to the repository's root; or those of `places`."""
    listed = subprocess.run(["git", "ls-files", "src/fastkam"], cwd=root, check=True, text=True,
                            capture_output=True).stdout.split()
    if places:
        return [name for name in listed if Path(name).suffix in LANGUAGES
                and any(Path(name).is_relative_to(place) for place in places)]
    package = Path("src/fastkam")
    return [name for name in listed if Path(name).suffix in LANGUAGES and (
        Path(name).relative_to(package).as_posix() in FILES
        or any(Path(name).is_relative_to(package / folder) for folder in FOLDERS))]


def language(file):
    """Return the module that knows the mutants of a file."""
    return LANGUAGES[Path(file).suffix]


def choose(root, n, seed, places=()):
    """Return n mutants in order of files: one of each file, then a second one, and so on."""
    chosen, left = [], {}
    for file in sources(root, places):
        text = (root / file).read_text(encoding="utf-8")
        found = list(dict.fromkeys(language(file).mutants_of(file, text)))
        if found:
            random.Random(f"{seed} {file}").shuffle(found)
            left[file] = found
    generator = random.Random(seed)
    while len(chosen) < n and left:
        files = list(left)
        generator.shuffle(files)
        for file in files[:n - len(chosen)]:
            chosen.append(left[file].pop())
            if not left[file]:
                del left[file]
    return sorted(chosen)
