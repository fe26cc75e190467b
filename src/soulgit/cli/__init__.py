"""The command line: it parses, calls and renders, and decides nothing."""

from soulgit.cli.app import main

__all__ = ["main"]
