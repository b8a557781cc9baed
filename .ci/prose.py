"""Check the words of documentation, docstrings, comments and messages; suggest better ones."""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = "*.md papers/*.md docs/**/*.md docs/**/*.rst docs/**/*.py src/**/*.py papers/src/**/*.py"
BETTER = {
    "told|tells?|says? (?:what|that|how|which|whether)": "reports",
    "mended|gave way|went wrong|refus(?:e|es|ed|al)": "was corrected, failed, raises an error",
    "(?<!there.)is no(?! longer| more)": "is not a",
    "are others|goe?s? on from": "differ, resumes from",
    "asked for|will do": "requested, is sufficient",
    "as ever|anew|at hand": "as usual, again, available",
    "for free|next to nothing": "at negligible cost",
    "in view|nothing set": "chosen on, default settings",
    "beats?": "is better than",
    "shows? in no|from where (?:it|they) (?:is|are)": "is not visible in, starting from",
    "share of the variance": "fraction of the variance",
    "honest(?:ly|y)?|said plainly|whoever|many an?": "(leave it out)",
    r"grey|colour\w*|centred|centres?|metres?|neighbour\w*|normalised": "American spelling",
}
WORDS = {re.compile(rf"\b(?:{old})\b".replace(" ", r"[\s#]+"), re.I): BETTER[old] for old in BETTER}
QUESTION = re.compile(r"(What|Where|Which|Whether|How)\b")
#: Code blocks, names in quotes, arguments, parameters of numpydoc, examples.
CODE = r"^```\w*$.*?^```$|`[^`]*`|\"[\w/-]+\"|'\w+'|\w+=\S+|--\w+|^ *[\w, ]+ : .*?$|^ *>>> .*?$"
MASK = re.compile(CODE, re.M | re.S)


def parts_of(path: Path, text: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the prose of a file, and its docstrings or headings, with line numbers."""
    if path.suffix != ".py":
        heads = re.finditer(r"^(?:#+ )(.+)$|^(.+)(?=\n[=-]{4})", text, re.M)
        return [(1, text)], [(text.count("\n", 0, m.start()) + 1, m[1] or m[2]) for m in heads]
    kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", None))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kind = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kind)]
    docs = [(getattr(node, "lineno", 1), ast.get_docstring(node) or "") for node in nodes]
    return [(token.start[0], token.string) for token in tokens if token.type in kinds], docs


found = []
for path in sorted({path for pattern in FILES.split() for path in ROOT.glob(pattern)}):
    name = str(path.relative_to(ROOT))
    if not {"gallery", "generated"} & {*path.parts}:
        parts, titles = parts_of(path, path.read_text(encoding="utf-8"))
        found += [f"{name}:{n}: question word: {t[:50]!r}" for n, t in titles if QUESTION.match(t)]
        for start, text in parts:
            prose = MASK.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)
            for words, better in WORDS.items():
                for hit in words.finditer(prose):
                    line = start + text.count("\n", 0, hit.start())
                    found.append(f"{name}:{line}: {hit[0]!r}: {better}")
sys.exit("\n".join(found) or None)
