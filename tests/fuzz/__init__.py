"""Calls of every public function with odd arguments, in processes of their own: see `__main__`.

``PYTHONPATH=tests python -m fuzz 100000`` makes 100 000 calls.
"""
