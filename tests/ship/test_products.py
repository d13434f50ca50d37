"""A covering design: every pair of exporter, form, kernel, goal, preparation of rows and target once, labels compared."""

from itertools import combinations

import pytest

from tools.products import DECISIONS, FORMS, SPECS, TARGETS, covering, run

PARTS = 4


@pytest.fixture(scope="module")
def design():
    return covering()


@pytest.mark.parametrize("part", range(PARTS))
def test_exports_predict_as_python_does(part, design):
    shown = {case: run(case) for case in design[part::PARTS]}
    assert not {case: outcome for case, outcome in shown.items() if not outcome.startswith(("same", "not run"))}


def test_the_design_has_every_pair(design):
    pairs = {pair for case in design for pair in combinations(case, 2)}
    for exporter, forms in FORMS.items():
        assert {(exporter, form) for form in forms} | {(exporter, target) for target in TARGETS[exporter]} <= pairs
    assert {(kernel, goal) for kernel in SPECS for goal in DECISIONS} <= pairs
