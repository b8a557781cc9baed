"""Check every internal link of the built site: pages, images, downloads and anchors."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.names |= {value for key in ("id", "name") if (value := values.get(key))}
        # Scripts, images and style sheets must be part of the site; links may be external.
        loads = tag in ("script", "img") or (
            tag == "link" and "stylesheet" in (values.get("rel") or "")
        )
        for key in ("href", "src"):
            if value := values.get(key):
                self.links.append(value)
                if loads and urlsplit(value).netloc:
                    self.foreign.append(value)


def main(site: Path) -> int:
    pages: dict[Path, _Page] = {}
    # The static files of the theme contain a template.
    for path in sorted(set(site.rglob("*.html")) - set((site / "_static").rglob("*"))):
        pages[path] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    broken, count = [], 0
    for path, page in pages.items():
        broken += [f"{path.relative_to(site)}: loads {link}" for link in page.foreign]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(site)}: {link} is not there")
            elif anchor and target in pages and anchor not in pages[target].names:
                broken.append(f"{path.relative_to(site)}: {link} has no such place")
    print(f"{len(pages)} pages, {count} internal links, {len(broken)} broken")
    print("\n".join(broken[:50]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
