"""The command line: it parses, calls and renders, and decides nothing."""

from soulgit.cli.app import run

__all__ = ["run"]
