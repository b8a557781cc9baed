"""The page that shows what was run: one HTML file, complete in itself."""

from ikpca.reports.chapters import Chapter, chapters
from ikpca.reports.page import page
from ikpca.reports.records import as_json

__all__ = ["Chapter", "as_json", "chapters", "page"]
