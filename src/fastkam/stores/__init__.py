"""Where a run writes its draws while it goes on: a folder of .npy files, or a zarr group."""

from fastkam.stores.npy import Npy
from fastkam.stores.store import Store, as_store, store_at
from fastkam.stores.zarr import Zarr

__all__ = ["Npy", "Store", "Zarr", "as_store", "store_at"]
