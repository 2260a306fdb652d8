from collections.abc import Iterable
from typing import NewType

Names = NewType("Names", object)

NUMBER: int
IPV4: int
IPV6: int
ENCODED: int

def names(words: Iterable[str], /) -> Names: ...
def look(names: Names, raw: bytes, /) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int, int]]]: ...
