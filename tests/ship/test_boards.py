"""Costs on processors: models compile for each of them, and integers alone take less than floats."""

import pytest
from shipped import ROWS, model_of

from slimsvm.ship.boards import BOARDS, board_cost
from slimsvm.ship.c import CExporter
from slimsvm.ship.source import artefact_of


@pytest.mark.parametrize("target", BOARDS)
def test_integers_take_less_than_floats(target):
    if BOARDS[target].missing:
        pytest.skip(f"{', '.join(BOARDS[target].missing)} not installed")
    artefact = artefact_of(model_of())
    plain, whole = (
        board_cost(artefact, target, exporter, ROWS)
        for exporter in (CExporter("int8"), CExporter("int8", integers=True, rows=ROWS))
    )
    assert 0 < whole.flash < plain.flash
    assert whole.ram == plain.ram == 0
    assert 0 < whole.stack < 500
    assert whole.steps is not None
    assert plain.steps is not None
    assert 0 < whole.steps < plain.steps or target == "cortex-m4"  # which has floats


def test_other_targets_are_refused():
    with pytest.raises(ValueError, match=r"no target 'z80'; there are .*avr"):
        board_cost(artefact_of(model_of()), "z80", CExporter())
