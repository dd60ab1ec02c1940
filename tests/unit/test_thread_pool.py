"""The thread pool does every task exactly once, and all are done when the call returns.

The header is compiled with delays at the places where threads might overtake each other. A missing
task is a failure, and the test must find the mistake that is planted.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

HEADER = Path(__file__).parents[2] / "src" / "fastkam" / "_core" / "engine" / "thread_pool.h"

DELAY = r"""
#include <unistd.h>
static void delay(void)
{
    static unsigned state;
    unsigned r = __atomic_add_fetch(&state, 2654435761u, __ATOMIC_RELAXED) >> 24;
    if (r < 64) usleep(4 * r);
}
static inline void fk_relax(void)
"""

PROGRAM = r"""
#include <string.h>
static int done[64], mark;

static void task(int i, void *data)
{
    unsigned r = (i * 2654435761u + mark * 40503u) >> 20;
    if (r % 4 == 0) usleep(r % 200);
    done[i] += mark;
}

int rounds_that_failed(int helpers, int rounds)
{
    static fk_pool pool;
    int failed = 0;
    memset(&pool, 0, sizeof pool);
    if (fk_prepare_pool(&pool, helpers)) return -1;
    for (int part = 0; part < 4; part++) {
        fk_start_pool(&pool, 1 + part % helpers);
        for (int k = 0; k < rounds; k++) {
            int m = k % 12;
            mark = part * rounds + k + 1;
            memset(done, 0, sizeof done);
            fk_run_tasks(&pool, m, task, NULL);
            for (int i = 0; i < 64; i++) failed += done[i] != (i < m ? mark : 0);
        }
        fk_end_pool(&pool);
    }
    fk_free_pool(&pool);
    return failed;
}
"""


def failures(folder, change=("", "")):
    """Return the number of failed tasks, with one change made to the header."""
    text = HEADER.read_text()
    for old, new in (
        ("static inline void fk_relax(void)\n", DELAY),
        ("#define FK_LOOKS 2000 ", "#define FK_LOOKS 20 "),
        ("            && fk_atomic_take(&c->waiting))\n            PyThread",
         "            && (delay(), fk_atomic_take(&c->waiting)))\n            PyThread"),
        ("    fk_atomic_store(&h->sleeping, 1);\n",
         "    delay(); fk_atomic_store(&h->sleeping, 1); delay();\n"),
        ("        fk_atomic_store(&c->waiting, 1);\n",
         "        delay(); fk_atomic_store(&c->waiting, 1); delay();\n"),
        change,
    ):
        assert not old or text.count(old) == 1, old
        text = text.replace(old, new) if old else text
    source, library = folder / "pool.c", folder / "pool.so"
    source.write_text(text + PROGRAM)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}",
                    "-o", library, source, "-lpthread"], check=True)
    call = f"import ctypes; print(ctypes.CDLL({str(library)!r}).rounds_that_failed(5, 400))"
    # in a process of its own: a mistake may also be that threads wait for each other forever
    found = subprocess.run([sys.executable, "-c", call], capture_output=True, check=True,
                           timeout=120)
    return int(found.stdout)


def test_every_task_of_the_thread_pool_is_done(tmp_path):
    assert failures(tmp_path) == 0


def test_a_caller_that_does_not_wait_is_detected(tmp_path):
    change = ("for (int look = 0; fk_atomic_load(&c->gate) != FK_CLOSED; look++)",
              "for (int look = 0; 0;)")
    assert failures(tmp_path, change) > 0
