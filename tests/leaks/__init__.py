"""Runs by the thousand in one process, whose memory must not grow: `runs`, `growth`, `__main__`."""
