"""Translate several Cython modules to C in one process; the build calls it.

    python tools/translate.py CYTHON FOLDER DEPFILE [OPTION ...] -- SOURCE ...

CYTHON takes a second of processor time to start, three times what a module takes. So it is called
once for many modules, and only for those whose C file in FOLDER is older than what it is made from.
The C file of a/b.pyx is FOLDER/b.c, and FOLDER/b.c.dep lists its sources; DEPFILE has them all.
"""

import json
import subprocess
import sys
from pathlib import Path


def sources_of(output):
    """Return what a C file was made from, as its depfile lists it; empty without one."""
    listed = Path(f"{output}.dep")
    if not listed.exists():
        return []
    joined = listed.read_text(encoding="utf-8").replace("\\\n", " ").replace("\\ ", "\0")
    return [Path(name.replace("\0", " ")) for name in joined.partition(": ")[2].split()]


def is_current(output):
    """Return whether a C file exists and is newer than everything it was made from."""
    sources = sources_of(output)
    return bool(sources) and output.exists() and all(
        source.exists() and source.stat().st_mtime <= output.stat().st_mtime for source in sources)


def escaped(path):
    """Return a path as a depfile has it."""
    return str(path).replace(" ", "\\ ")


def main(cython, folder, depfile, *rest):
    options, modules = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    outputs = {Path(folder) / f"{Path(module).stem}.c": module for module in modules}
    # other options or another Cython make other C files
    version = subprocess.run([cython, "--version"], check=True, text=True, capture_output=True)
    made_by = json.dumps([version.stdout + version.stderr, options])
    remembered = Path(f"{depfile}.options")
    same = remembered.exists() and remembered.read_text(encoding="utf-8") == made_by
    stale = [output for output in outputs if not (same and is_current(output))]
    for output in stale:        # one that cannot be translated must not look current
        Path(f"{output}.dep").unlink(missing_ok=True)
    remembered.write_text(made_by, encoding="utf-8")
    if stale:
        done = subprocess.run([cython, "--depfile", *options, "--output-file", folder,
                               *(outputs[output] for output in stale)])
        if done.returncode:
            return done.returncode
    needed = sorted({source for output in outputs for source in sources_of(output)})
    Path(depfile).write_text(
        f"{escaped(next(iter(outputs)))}: {' '.join(map(escaped, needed))}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
