"""The arrays in a file of a run: written block by block, and read without trusting their sizes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.ranges import BadField
from fastkam.run.lazy import StoredArray

if TYPE_CHECKING:
    import zipfile

KINDS = "biufcUSmM"  # kinds of dtypes that are allowed: no objects and no records
PIECE = 2**18  # bytes read at once
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def write_members(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays as NumPy's savez does; those of a store are read and written block by block."""
    import zipfile  # imported late, since most runs write no file

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            if not isinstance(array, StoredArray):
                array = np.asanyarray(array)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if isinstance(array, StoredArray):
                    np.lib.format.write_array_header_1_0(member, {
                        "descr": np.lib.format.dtype_to_descr(array.dtype),
                        "fortran_order": False, "shape": array.shape})
                    for _, _, part in array.blocks():
                        member.write(np.ascontiguousarray(part).data)
                else:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def read_members(
    file: IO[bytes], only: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays in the file, {name: array}, in the byte order of this machine.

    By default these are all arrays; otherwise those with the names in `only`.

    fastkam writes arrays as they are, uncompressed: together they are not larger than the file,
    and neither is the memory that they take.

    Raises
    ------
    BadField
        For an array that is not as fastkam writes it.
    Exception
        Of many types, if the file is not such an archive.
    """
    import zipfile

    file.seek(0, 2)
    room = file.tell()
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        for member in members:
            room -= member.file_size
            if member.compress_type != zipfile.ZIP_STORED:
                raise BadField(plain_name(member), "is compressed, which fastkam does not do")
            if member.file_size != member.compress_size or room < 0:
                raise BadField(plain_name(member), f"says that it has {member.file_size} bytes, "
                                                   "more than the file has for it")
        arrays = {}
        for member in members:
            name = plain_name(member)
            if name in arrays:
                raise BadField(name, "is in the file twice")
            if only is not None and name not in only:
                continue
            with archive.open(member) as content:
                arrays[name] = read_array(
                    name, cast(zipfile.ZipExtFile, content), member.file_size)
    return arrays


def plain_name(member: zipfile.ZipInfo) -> str:
    """The name of an array, from the name of its file in the archive."""
    return member.filename.removesuffix(".npy")


def read_array(name: str, content: zipfile.ZipExtFile, size: int) -> NDArray[Any]:
    """The array in a file of `size` bytes; BadField if its header has another size."""
    version = np.lib.format.read_magic(content)
    if version not in HEADERS:
        raise BadField(name, f"has the version {version} of numpy's format, not one of "
                             f"{list(HEADERS)}")
    shape, by_columns, dtype = HEADERS[version](content)
    if dtype.kind not in KINDS or dtype.subdtype is not None:
        raise BadField(name, f"must not be an array of {dtype}")
    length = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or content.tell() + length != size:
        raise BadField(name, f"says that it has shape {shape}, and has {size - content.tell()} "
                             "bytes")
    memory, start = np.empty(length, np.uint8), 0
    view = memory.data
    while start < length:
        n = content.readinto(view[start : start + PIECE])
        if not n:
            raise EOFError(f"{name} ends after {start} of {length} bytes")
        start += n
    content.read(1)  # at the end of a member its checksum is compared
    array = memory.view(dtype) if length else np.empty(0, dtype)
    array = array.reshape(shape, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)
