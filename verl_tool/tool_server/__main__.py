"""`python -m verl_tool.tool_server`."""

import sys

from verl_tool.tool_server.command import main

if __name__ == "__main__":
    sys.exit(main())
