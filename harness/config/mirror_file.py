"""``configs/mirrors.yml``: where published data sets are fetched from; a site may put its own mirrors first."""

from __future__ import annotations

from pathlib import Path

from harness.config.decode import INVALID, Decoder
from harness.config.yaml_marks import read_mapping
from harness.model.download import Download


def load_mirrors(path: Path) -> dict[str, Download]:
    """Data set → its files and mirrors.

    Raises:
        ConfigError: with all problems of the file.
    """
    decoder = Decoder(str(path))
    entries = decoder.mapping(read_mapping(path), "the file")
    downloads = {}
    for name, entry in entries.items():
        download = decoder.model(entry.value, Download, name)
        if download is INVALID:
            continue
        for file in download.files:
            wrong = [url for url in file.urls if not url.startswith(("http://", "https://", "file://"))]
            if wrong or not file.urls:
                decoder.problem(
                    entry.line, f"{file.name}: {wrong[0] if wrong else 'no url'}", "http, https or file URLs"
                )
        downloads[name] = download
    decoder.finish()
    return downloads
