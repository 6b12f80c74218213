"""Replay a policy: python scripts/play.py --task jumper.tripod --headless --measure."""

import sys

try:
  from mjrl.cli.play import main
except ModuleNotFoundError as error:
  sys.exit(
    f"{error.name} is not installed for {sys.executable}: use .venv/bin/python after make train"
  )

if __name__ == "__main__":
  sys.exit(main())
