"""`python -m mjrl COMMAND`: what is asked of the installation, beside training and replaying."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from mjrl.names import nearest

# Name to what it does; each is a module of mjrl.cli with a function `main(argv) -> int`.
COMMANDS: Mapping[str, str] = {
  "verify": "prove on this machine that runs repeat, and resume, to the bit",
  "report": "what can be relied on of a run, as text and as one HTML page",
  "runs": "list runs with what came of them, the newest first",
  "diff": "what differs between two runs, in configuration and outcome",
}


def main(argv: Sequence[str] | None = None) -> int:
  """Run a command, or list them. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  if not argv or argv[0] in ("-h", "--help"):
    print("python -m mjrl COMMAND; COMMAND --help explains its flags\n")
    print("\n".join(f"  {name:10}{text}" for name, text in COMMANDS.items()))
    return 0
  if argv[0] not in COMMANDS:
    print(f"error: there is no command {argv[0]!r}; {nearest(argv[0], COMMANDS)}", file=sys.stderr)
    return 2
  return import_module(f"mjrl.cli.{argv[0]}").main(argv[1:])


if __name__ == "__main__":
  sys.exit(main())
