"""What keeps a home small, done to the end on demand."""

from __future__ import annotations

from soulgit import growth, reflogs
from soulgit.growth import Collected, Progress
from soulgit.home import AnyHome, as_home


def gc(home: AnyHome, progress: Progress = lambda done, of: None) -> Collected:
    """Cut reflogs, pack what is loose, and make one pack of all that were made here.

    No object is dropped. Raises BusyError where another process packs, or git collects.
    """
    home = as_home(home)
    with home.writing() as ground:
        reflogs.trim(ground, longer_than_bytes=0)
    return growth.collect(ground, progress)
