"""What processes of tests have when they are forked: all imports, and the sandbox's key."""

import gc

from bot.cli import app, servers
from bot.sandbox import auth
from bot.sandbox.app import running

__all__ = ["app", "running", "servers"]

auth.private_key()
gc.freeze()
