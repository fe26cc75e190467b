"""The only place that imports pygit2: plain frozen values go in and come out."""

from soulgit.git.past import Past
from soulgit.git.repository import Repository
from soulgit.git.values import Commit, Head, TreeEntry

__all__ = ["Commit", "Head", "Past", "Repository", "TreeEntry"]
