"""Where published data sets can be had: files with their checksums and mirrors."""

from __future__ import annotations

from pydantic import Field

from harness.model.axes import Frozen, PositiveInt


class RemoteFile(Frozen):
    """A published file."""

    name: str = Field(description="file name in the data set's directory")
    md5: str = Field(description="MD5 as published, 32 hex digits", pattern="^[0-9a-f]{32}$")
    length: PositiveInt | None = Field(None, description="bytes")
    urls: tuple[str, ...] = Field(description="mirrors, tried in this order: http, https or file URLs")
    unpack: bool = Field(False, description="a tar archive, to be unpacked and then removed")


class Download(Frozen):
    """All files of a published set."""

    files: tuple[RemoteFile, ...]
