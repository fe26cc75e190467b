"""The only place that imports pygit2: plain frozen values go in and come out."""

from soulgit.git.repository import Repository
from soulgit.git.values import Commit, Head, TreeEntry

__all__ = ["Commit", "Head", "Repository", "TreeEntry"]
