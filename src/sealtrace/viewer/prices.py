"""What a model call cost, by a list of prices that the reader keeps.

No provider says in its answer what it will charge, and a list in this package would be out of date. So
the reader writes one, per million tokens:

```toml
currency = "$"                     # the default

["gpt-5-mini"]                     # and gpt-5-mini-2026-08-07
input = 0.25
cached = 0.025                     # of the input, what came from the cache; as input where it is left out
output = 2.0
```
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any, Final

from ..errors import SettingsError
from ..run import Node

__all__ = ["Prices"]

_MILLION: Final = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class _Price:
    input: float
    cached: float
    output: float


class Prices:
    """A list of prices.

    Args:
        prices: By model; a name stands for its dated versions, too.
        currency: What stands before an amount.
    """

    def __init__(self, prices: dict[str, _Price], currency: str = "$") -> None:
        self._prices = prices
        self._currency = currency

    @classmethod
    def from_file(cls, path: Path) -> Prices:
        """Read a list.

        Raises:
            SettingsError: It cannot be read, or a price in it is none.
        """
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"cannot read the prices in {path}: {error}", setting="prices") from None
        currency = found.pop("currency", "$")
        if not isinstance(currency, str) or len(currency) > 8:
            raise SettingsError(f"{path}: the currency is a sign or a short word", setting="prices")
        return cls({model: _price(path, model, fields) for model, fields in found.items()}, currency)

    def of(self, node: Node) -> float | None:
        """What the model call on a line cost; None where tokens, model or price are not known."""
        if node.tokens is None or node.kind not in ("model", "generation"):
            return None
        price = self._of_model(next((event.model for event in node.events if event.model), None))
        if price is None:
            return None
        given, answered = node.tokens
        cached = min(node.cached, given)
        return ((given - cached) * price.input + cached * price.cached + answered * price.output) / _MILLION

    def _of_model(self, model: str | None) -> _Price | None:
        if model is None:
            return None
        fitting = [name for name in self._prices if model == name or model.startswith(f"{name}-")]
        return self._prices[max(fitting, key=len)] if fitting else None

    def said(self, amount: float) -> str:
        """An amount in words: two figures that say something, and cents from one on."""
        if amount >= 1 or amount == 0:
            return f"{self._currency}{amount:,.2f}"
        return f"{self._currency}{amount:.{max(2, 1 - math.floor(math.log10(amount)))}f}"


def _price(path: Path, model: str, fields: Any) -> _Price:
    given: dict[str, Any] = fields if isinstance(fields, dict) else {}
    known = {name: value for name, value in given.items() if type(value) in (int, float) and 0 <= value < math.inf}
    if known != given or not {"input", "output"} <= set(known) <= {"input", "output", "cached"}:
        raise SettingsError(
            f"{path}: {model!r} needs `input` and `output`, and may have `cached`, each a price per million tokens",
            setting="prices",
        )
    return _Price(known["input"], known.get("cached", known["input"]), known["output"])
