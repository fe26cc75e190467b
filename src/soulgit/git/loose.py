"""Loose objects that were cut off, which libgit2 would read for ever."""

from __future__ import annotations

import os
import zlib

from soulgit.errors import RepositoryRefused


def refuse_cut_off(objects: str, object_id: str) -> None:
    """Raise RepositoryRefused for an object whose file ends before its bytes do.

    A full disk or a power cut leaves such files to programs that do not sync. Other damage
    libgit2 tells itself; an object that is in a pack is left to it too.
    """
    try:
        with open(os.path.join(objects, object_id[:2], object_id[2:]), "rb") as file:
            data = file.read()
    except OSError:
        return
    stream = zlib.decompressobj()
    try:
        stream.decompress(data)
    except zlib.error:
        return
    if not stream.eof:
        raise RepositoryRefused(
            f"object {object_id[:12]} is cut off: its file ends too early",
            hint="`git fsck` names all such; fetch them from a clone, or put back a backup",
        )
