"""Telling media from text: what is an image, a file or a recording is not searched but replaced."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MEDIA_FIELDS", "SHORT_BASE64", "is_media"]

_DATA_URL: Final = re.compile(r"data:[\w.+-]{1,60}/[\w.+-]{1,80}(?:;[\w.=+-]{1,80}){0,4};base64,")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{1024,}={0,2}\Z")
_HEX_ONLY: Final = re.compile(r"[0-9a-fA-F]+\Z")

MEDIA_FIELDS: Final = frozenset({"b64_json", "file_data", "image_data", "audio_data", "image_base64", "screenshot"})
"""Fields of the vendor's API that hold nothing but media."""

SHORT_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\n-]{128,}={0,2}\Z")
"""What counts as media in such a field."""


def is_media(text: str) -> bool:
    """Whether a string is media by its own look: a data URL, or a long run of base64."""
    return (text.startswith("data:") and _DATA_URL.match(text) is not None) or (
        len(text) >= 1024
        and _BASE64.match(text) is not None
        and not (text.isupper() or text.islower() or _HEX_ONLY.match(text))
    )
