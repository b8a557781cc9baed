"""No unsafe code in the sources; downloads have checksums and stay in the cache."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import ikpca_papers
from ikpca_papers.data import registry
from tests.model_files.test_security import offences

SOURCE = Path(ikpca_papers.__file__).parent


def test_no_file_can_run_code():
    result = {path: list(offences(path.read_text(), path)) for path in SOURCE.rglob("*.py")}
    assert not {path: what for path, what in result.items() if what}


def test_downloads_go_below_the_cache_and_have_checksums():
    remotes = [remote for entry in registry().values() for remote in entry.remotes]
    assert remotes
    for remote in remotes:
        assert not PurePosixPath(remote.path).is_absolute()
        assert ".." not in PurePosixPath(remote.path).parts
        assert remote.address.startswith(("https://", "http://"))
        assert len(bytes.fromhex(remote.sha256)) == 32
