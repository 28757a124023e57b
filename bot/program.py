"""The version of this program, and the ports that its servers use by default."""

VERSION = "0.9.0"
SERVICE_PORT, SANDBOX_PORT, MCP_PORT = 8642, 8643, 8644
