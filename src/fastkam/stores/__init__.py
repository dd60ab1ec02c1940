"""Where a run writes its draws while it goes on: a folder of .npy files, or a zarr group."""

from fastkam.stores.npy import Npy
from fastkam.stores.store import Store
from fastkam.stores.zarr import Zarr

__all__ = ["Npy", "Store", "Zarr"]
