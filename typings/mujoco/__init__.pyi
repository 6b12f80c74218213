# MuJoCo's names come from compiled modules without types: to the type checker all of them are Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
