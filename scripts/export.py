"""Export a policy for a robot: python scripts/export.py --task jumper.tripod."""

import sys

try:
  from mjrl.cli.export import main
except ModuleNotFoundError as error:
  sys.exit(
    f"{error.name} is not installed for {sys.executable}: use .venv/bin/python after make train"
  )

if __name__ == "__main__":
  sys.exit(main())
