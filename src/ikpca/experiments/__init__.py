"""What is run, in which process, and what comes out; drawn and printed elsewhere."""

from ikpca.experiments.contestants import CONTESTANTS, DENSE
from ikpca.experiments.demo import run_demo
from ikpca.experiments.files import prepare_folder, write_whole
from ikpca.experiments.processes import ContestantFailed
from ikpca.experiments.results import DemoResult, Run
from ikpca.experiments.spec import DemoSpec
from ikpca.experiments.tables import as_csv, as_json

__all__ = [
    "CONTESTANTS",
    "DENSE",
    "ContestantFailed",
    "DemoResult",
    "DemoSpec",
    "Run",
    "as_csv",
    "as_json",
    "prepare_folder",
    "run_demo",
    "write_whole",
]
