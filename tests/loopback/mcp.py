"""A real MCP server in this process, reached over the protocol's own in-memory transport."""

from __future__ import annotations

from typing import Any

import mcp
from agents.mcp import MCPServer
from mcp.server import MCPServer as Implementation


class InProcessMcp(MCPServer):
    """What the SDK sees of it; each request is a session of its own, so no task owns a connection."""

    def __init__(self, implementation: Implementation, **options: Any) -> None:
        super().__init__(**options)
        self._implementation = implementation

    @property
    def name(self) -> str:
        """The implementation's name."""
        return self._implementation.name

    async def connect(self) -> None:
        """Nothing: each request connects."""

    async def cleanup(self) -> None:
        """Nothing is kept open."""

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
        """Ask the server for its tools."""
        async with mcp.Client(self._implementation) as client:
            return (await client.list_tools()).tools

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        """Have the server run a tool."""
        async with mcp.Client(self._implementation) as client:
            return await client.call_tool(tool_name, arguments)

    async def list_prompts(self, cursor: str | None = None) -> Any:
        """No prompts are used."""
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        """No prompts are used."""
        raise NotImplementedError
