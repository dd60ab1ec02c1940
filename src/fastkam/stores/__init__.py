"""Stores: a run writes its draws to a folder of .npy files, or to a zarr group."""

from fastkam.stores.npy import Npy
from fastkam.stores.store import Store
from fastkam.stores.zarr import Zarr

__all__ = ["Npy", "Store", "Zarr"]
