"""The choice along a path of models."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimsvm.kernels import RBF
from slimsvm.model import Expansion, Judgement, Status
from slimsvm.selection.allowance import Allowance, largest_as_good, smallest
from slimsvm.selection.path import Made, Path, Step, averaged, merge, prefer, sizes_up_to


def step(size, error, settings=""):
    return Step(Expansion(RBF(1.0), np.zeros((size, 2)), np.zeros((size, 1)), np.zeros(1)), error, Made(settings))


def path(*pairs, settings=""):
    return Path(tuple(step(size, error, settings) for size, error in pairs), Status.BUDGET)


steps = st.dictionaries(st.integers(0, 40), st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5]), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Made(), ""),
        (Made("eta=0.5", refit=True), "eta=0.5, refit"),
        (Made(target="slant"), "target=slant"),
        (Made(target="label", decay=0.25), "target=label, decay x 0.25"),
        (Made(target="label", metric="both"), "target=label, metric=both"),
        (Made(target="label", loss="cross_entropy"), "target=label, metric=fixed, loss=cross_entropy"),
    ],
    ids=str,
)
def test_the_text_of_a_step_is_made_from_what_made_it(made, text):
    some = Step(step(3, 0.5).model, 0.5, made)
    assert some.settings == text
    assert some.made is made


def test_a_path_lists_its_models_sizes_and_errors():
    some = path((1, 0.4), (3, 0.2))
    assert some.sizes == [1, 3]
    assert some.errors == [0.4, 0.2]
    assert [model.size for model in some.models] == [1, 3]
    assert [one.size for one in some] == [1, 3]
    assert len(some) == 2


def test_a_path_is_indexed_like_a_list():
    some = path((1, 0.4), (3, 0.2), (5, 0.1))
    assert some[0] is some.steps[0]
    assert some[-1].size == 5
    assert [one.size for one in some[1:]] == [3, 5]
    with pytest.raises(IndexError):
        some[3]


def test_a_printed_path_is_a_short_table():
    some = Path((step(1, 0.4, "eta=0.5"), step(12, 0.25)), Status.BUDGET, n_validation=40)
    assert repr(some).splitlines() == [
        "Path of 2 models on 40 validation rows; stopped at the budget of support vectors",
        "  size  error     settings",
        "     1  0.4       eta=0.5",
        "    12  0.25",
    ]
    assert repr(replace(some, error_is="1 - R^2")).splitlines()[1] == "error: 1 - R^2"
    assert some._repr_html_().count("<tr>") == 3
    assert repr(some.keep(some[1])).splitlines()[-1] == "    12  0.25  <- kept"
    assert repr(some[0]) == "Step(size=1, error=0.4, settings='eta=0.5')"
    long = path(*((size, 0.5) for size in range(1, 101)))
    lines = repr(long).splitlines()
    assert len(lines) == 15
    assert lines[8] == "   ...  (88 more)"
    assert [int(line.split()[0]) for line in lines[9:]] == [95, 96, 97, 98, 99, 100]


def test_folds_are_averaged_by_size_and_models_are_those_of_the_first():
    first, second = path((1, 0.4), (4, 0.2)), path((1, 0.2), (3, 0.1))
    both = averaged([first, second], np.array([0.5, 0.5]))
    assert both.sizes == [1, 4]
    assert both.errors == pytest.approx([0.3, 0.15])
    assert both.models == first.models


def test_a_path_finds_steps_by_size():
    some = path((2, 0.4), (4, 0.2))
    assert some.at(4) is some[1]
    assert [some.up_to(size).size for size in (1, 2, 3, 9)] == [2, 2, 2, 4]
    with pytest.raises(ValueError, match=r"no model of 3 support vectors on this path; it has sizes \[2, 4\]"):
        some.at(3)


@given(errors=steps, budget=st.integers(0, 45))
def test_best_is_the_lowest_error_within_the_budget_and_the_largest_of_equals(errors, budget):
    some = path(*sorted(errors.items()))
    affordable = {size: error for size, error in errors.items() if size <= budget}
    if not affordable:
        with pytest.raises(ValueError, match=f"at most {budget}"):
            some.best(budget)
        return
    lowest = min(affordable.values())
    chosen = some.best(budget)
    assert chosen.error == lowest
    assert chosen.size == max(size for size, error in affordable.items() if error == lowest)


def test_best_without_held_out_errors_is_the_largest_within_the_budget():
    assert path((1, np.nan), (4, np.nan), (9, np.nan)).best(5).size == 4


def test_a_budget_below_every_size_is_refused_with_the_sizes_there_are():
    with pytest.raises(ValueError, match=r"sizes \[4, 8\]"):
        path((4, 0.1), (8, 0.1)).best(3)


def allowance(limit, noise=0.0, **more):
    """Return what a tolerance of `limit` over an error of 0 allows, if every difference has this standard error."""
    return Allowance(Judgement(0.0, noise), limit, "nothing", **more)


@given(errors=steps, allowed=st.sampled_from([-0.1, 0.0, 0.15, 0.2, 1.0]))
def test_within_is_the_smallest_size_with_at_most_the_error_allowed_that_the_next_two_confirm(errors, allowed):
    sizes = sorted(errors)
    good = []
    for place, size in enumerate(sizes):
        few = [errors[other] for other in sizes[place : place + 3]]
        if few[0] <= allowed and sum(few) / len(few) <= allowed + 1e-12:
            good.append(size)
    chosen = path(*sorted(errors.items())).within(allowance(allowed))
    assert (chosen.size if chosen else None) == (min(good) if good else None)


def test_a_lucky_size_is_not_within():
    errors = (4, 0.10), (8, 0.30), (16, 0.20), (32, 0.12), (64, 0.11)
    assert path(*errors).within(allowance(0.15)).size == 32


def test_the_difference_of_two_models_on_the_same_rows_is_less_uncertain_than_each_of_them():
    rng = np.random.default_rng(0)
    wrong = (rng.random(1000) < 0.2).astype(float)
    other = np.where(np.arange(1000) < 10, 1 - wrong, wrong)  # differs on ten rows
    full, small = (Judgement.of(losses, np.ones(1000)) for losses in (wrong, other))
    room = small.error - full.error + np.std(other - wrong) / np.sqrt(1000)
    assert Allowance(full, room + 1e-4, "rows").allows(small)
    assert not Allowance(full, room - 1e-3, "rows").allows(small)


@pytest.mark.parametrize(("noise", "margin"), [(0.0, 0.0), (0.01, 0.01), (0.02, 0.02), (0.03, 0.01), (0.05, 0.0)])
def test_the_margin_for_chance_leaves_something_of_a_tolerance_that_few_rows_cannot_show(noise, margin):
    allowed = allowance(0.04, noise)
    assert allowed.allows(Judgement(0.04 - margin - 1e-6, noise))
    assert not allowed.allows(Judgement(0.04 - margin + 1e-6, noise))


def test_one_rule_chooses_the_smallest_within_a_limit_and_the_largest_that_is_as_good():
    assert smallest([4, 2, 8, 2], [0.1, 0.2, 0.05, 0.15], 0.2) == 3  # of two of size 2, the better
    assert smallest([4, 2], [0.1, np.nan], 0.05) is None
    found = [Judgement(error, 0.01) for error in (0.3, 0.1, 0.12, 0.14)]
    assert largest_as_good(found, 2.0) == 2
    assert largest_as_good(found, 5.0) == 3


def test_recall_of_each_class_may_fall_by_one_row_or_a_twentieth():
    full = Judgement(0.1, 0.0, class_errors=np.zeros(2))
    one = Allowance(full, 1.0, "rows", class_rows=np.array([100, 4]))
    assert one.allows(Judgement(0.1, 0.0, class_errors=np.array([0.05, 0.25])))
    assert not one.allows(Judgement(0.1, 0.0, class_errors=np.array([0.06, 0.0])))
    assert not one.allows(Judgement(0.1, 0.0, class_errors=np.array([0.0, 0.5])))


@given(several=st.lists(steps, min_size=1, max_size=4))
def test_merge_keeps_the_lowest_error_of_every_size(several):
    merged = merge([path(*sorted(errors.items())) for errors in several], Status.CONVERGED)
    assert merged.status is Status.CONVERGED
    assert merged.sizes == sorted({size for errors in several for size in errors})
    for one in merged:
        assert one.error == min(errors[one.size] for errors in several if one.size in errors)


def test_merge_keeps_the_first_of_equals():
    merged = merge([path((2, 0.1), settings="first"), path((2, 0.1), settings="second")], Status.BUDGET)
    assert [one.settings for one in merged] == ["first"]


@given(budget=st.integers(1, 10**6))
def test_sizes_grow_by_at_most_a_quarter_of_a_doubling_or_a_little_more_at_the_end(budget):
    sizes = sizes_up_to(budget)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == budget
    assert sizes[: min(8, budget)] == list(range(1, min(8, budget) + 1))
    for small, large in pairwise(sizes):
        most = 0.25 if large < budget else 0.25 + 0.25 / 4
        assert large <= max(small + 1, np.ceil(small * 2**most) + 1)
    assert len(sizes) <= 8 + 4 * np.log2(budget) + 1


@pytest.mark.parametrize(
    ("per_doubling", "sizes"),
    [(1, [1, 2, 4, 8, 16, 20]), (2, [1, 2, 3, 4, 6, 8, 11, 16, 20]), (8, [*range(1, 18), 19, 20])],
)
def test_there_are_as_many_sizes_to_a_doubling_as_asked_for(per_doubling, sizes):
    assert sizes_up_to(20, per_doubling) == sizes


def test_a_size_next_to_the_budget_is_left_out():
    assert sizes_up_to(130, 1) == [1, 2, 4, 8, 16, 32, 64, 130]
    assert 128 not in sizes_up_to(130)


def test_a_few_held_out_rows_do_not_decide_for_a_smaller_model():
    pairs = (10, 0.10), (20, 0.11), (40, 0.20)
    for standard_error, chosen in ((0.03, 20), (0.001, 10), (0.0, 10)):
        some = tuple(replace(step(size, error), standard_error=standard_error) for size, error in pairs)
        assert Path(some, Status.BUDGET).best(40).size == chosen


def test_the_second_path_is_preferred_only_where_it_is_clearly_better():
    first = Path(tuple(replace(each, standard_error=0.04) for each in (step(1, 0.30), step(2, 0.20))), Status.BUDGET)
    second = Path((step(1, 0.10), step(2, 0.19), step(4, 0.05)), Status.CONVERGED)
    assert [(one.size, one.error) for one in prefer(first, second)] == [(1, 0.10), (2, 0.20), (4, 0.05)]
