"""The online learners against row-by-row loops that compute every kernel value, and against their theorems."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_moons

from slimsvm import SlimSVC
from slimsvm._core import core
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Laplacian, Linear, Poly, Precomputed, Sigmoid
from slimsvm.model import Status, Task
from slimsvm.papers.forgetron_rbp import DAMAGE, largest_phi
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.solvers.online import BLOCKS, Contest, Learner
from slimsvm.trainers import BSGD, RBP, TRAINERS, Forgetron
from slimsvm.trainers.bsgd import MAINTENANCE, inverse_factor
from slimsvm.trainers.frames.online import OnlineTrainer

ONLINE = {name: kind for name, kind in TRAINERS.items() if issubclass(kind, OnlineTrainer)}
#: one of each kind, with every maintenance
LEARNERS = {
    "forgetron": Forgetron(8, shuffle=False),
    "rbp": RBP(8, shuffle=False),
    **{name: BSGD(8, shuffle=False, maintenance=name, lam=0.01) for name in MAINTENANCE},
}
KERNELS = [RBF(0.4), Linear(), Poly(0.5, 1.0, 2), Laplacian(0.3)]


def blobs(n, classes, seed=0, spread=1.0):
    """Rows of overlapping clouds on a circle, with class numbers."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    angles = 2 * np.pi * labels / classes
    return 1.5 * np.column_stack([np.cos(angles), np.sin(angles)]) + spread * rng.normal(size=(n, 2)), labels


def task_of(kernel, X, labels, seed=0, weights=None):
    coding = OneVsRest(int(labels.max()) + 1)
    weights = np.ones(labels.size) if weights is None else weights
    return Task(HostRows(kernel, X), coding.encode(labels), weights, np.random.default_rng(seed))


# The textbook: one row after the other, all kernel values computed, nothing kept


class Function:
    """f(x) = sum_j k(x, z_j) c_j as two lists."""

    def __init__(self, kernel, classes):
        self.kernel, self.k = kernel, lambda x, z: float(kernel(x[None], z[None])[0, 0])
        self.codes = np.array([[-0.5], [0.5]]) if classes == 2 else np.eye(classes)
        self.points, self.coef = [], []

    def __call__(self, x):
        return sum((self.k(x, z) * c for z, c in zip(self.points, self.coef, strict=True)), np.zeros(self.codes.shape[1]))

    def margin(self, x, label):
        """Over the strongest rival, and the move against it."""
        scores = self.codes @ self(x)
        rival = max((j for j in range(scores.size) if j != label), key=lambda j: scores[j])
        return scores[label] - scores[rival], self.codes[label] - self.codes[rival]

    def unit(self, x, move):
        return move / np.linalg.norm(move) / np.sqrt(self.k(x, x))


def textbook_forgetron(kernel, X, labels, budget, rng):  # noqa: ARG001
    f, Q, M = Function(kernel, labels.max() + 1), 0.0, 0
    for x, label in zip(X, labels, strict=True):
        margin, move = f.margin(x, label)
        if margin > 0:
            continue
        M += 1
        f.points.append(x)
        f.coef.append(f.unit(x, move))
        if len(f.points) > budget:
            z, c = f.points[0], f.coef[0]
            length = np.sqrt(f.k(z, z))
            sigma, mu = np.linalg.norm(c) * length, f(z) @ c / np.linalg.norm(c) / length

            def damage(phi, sigma=sigma, mu=mu):
                return (sigma * phi) ** 2 + 2 * sigma * phi - 2 * sigma * phi * mu * phi

            roots = np.roots([sigma**2 - 2 * sigma * mu, 2 * sigma, Q - 15 / 32 * M])
            allowed = [p for p in (1.0, *roots.real[abs(roots.imag) < 1e-12]) if 0 < p <= 1]
            phi = max(p for p in allowed if damage(p) + Q <= 15 / 32 * M + 1e-12)
            Q += damage(phi)
            f.coef = [phi * c for c in f.coef]
            f.points.pop(0)
            f.coef.pop(0)
    return f


def textbook_rbp(kernel, X, labels, budget, rng):
    f = Function(kernel, labels.max() + 1)
    for x, label in zip(X, labels, strict=True):
        margin, move = f.margin(x, label)
        if margin > 0:
            continue
        if len(f.points) < budget:
            f.points.append(x)
            f.coef.append(f.unit(x, move))
        else:
            discarded = rng.integers(budget)
            f.points[discarded], f.coef[discarded] = x, f.unit(x, move)
    return f


def textbook_bsgd(kernel, X, labels, budget, lam, make_room, weights=None):
    f = Function(kernel, labels.max() + 1)
    weights = np.ones(labels.size) if weights is None else weights
    for t, (x, label, weight) in enumerate(zip(X, labels, weights, strict=True), start=1):
        margin, move = f.margin(x, label)
        f.coef = [(1 - 1 / t) * c for c in f.coef]
        if margin <= 1:
            f.points.append(x)
            f.coef.append(weight * move / (lam * t))
            if len(f.points) > budget:
                make_room(f)
    return f


def oldest_of_least(values):
    """Points are in the order of their age."""
    return next(j for j, value in enumerate(values) if value <= min(values) + 1e-9 * abs(min(values)))


def textbook_removal(f):
    p = oldest_of_least([c @ c * f.k(z, z) for z, c in zip(f.points, f.coef, strict=True)])
    f.points.pop(p)
    f.coef.pop(p)


def textbook_projection(f):
    """Least squares in feature space for every candidate."""
    K = np.array([[f.k(a, b) for b in f.points] for a in f.points])
    C, m = np.array(f.coef), len(f.points)

    def replaced(p):
        others = [j for j in range(m) if j != p]
        beta = np.linalg.solve(K[np.ix_(others, others)], K[others, p])
        return C[p] @ C[p] * (K[p, p] - K[others, p] @ beta), others, beta

    p = oldest_of_least([replaced(p)[0] for p in range(m)])
    _, others, beta = replaced(p)
    C[others] += beta[:, None] * C[p]
    f.points, f.coef = [f.points[j] for j in others], list(C[others])


def textbook_merging(f):
    """A search for every partner, kernel values at the merged point computed anew; it is as old as the partner."""
    p = oldest_of_least([c @ c for c in f.coef])
    a, x = f.coef[p], f.points[p]

    def merged(j, h):
        Z = np.multiply.outer(h, x) + np.multiply.outer(1 - h, f.points[j])
        parts = (np.outer(f.kernel(Z, z[None]), c) for z, c in ((x, a), (f.points[j], f.coef[j])))
        return Z, sum(parts)

    def loss(j, h):
        b = f.coef[j]
        return a @ a + b @ b + 2 * a @ b * f.k(x, f.points[j]) - (merged(j, np.atleast_1d(h))[1] ** 2).sum(axis=1)

    best, grid = {}, np.linspace(0, 1, 101)
    for j in range(len(f.points)):
        if j != p:
            losses = loss(j, grid)
            start = grid[losses <= losses.min() + 1e-9 * (a @ a)][0]  # h and 1 - h are equally good for equal lengths
            near = max(start - 0.01, 0), min(start + 0.01, 1)
            found = minimize_scalar(lambda h, j=j: loss(j, h)[0], bounds=near, method="bounded", options={"xatol": 1e-9})
            best[j] = min((loss(j, h)[0], h) for h in (start, found.x))
    j = min(best, key=best.get)
    (z,), (c,) = merged(j, np.atleast_1d(best[j][1]))
    f.points[j], f.coef[j] = z, c
    f.points.pop(p)
    f.coef.pop(p)


ROOM = {"removal": textbook_removal, "projection": textbook_projection, "merging": textbook_merging}


def textbook(name, kernel, X, labels, trainer, seed=0):
    if name in ROOM:
        return textbook_bsgd(kernel, X, labels, trainer.budget, trainer.lam, ROOM[name])
    loop = {"forgetron": textbook_forgetron, "rbp": textbook_rbp}[name]
    return loop(kernel, X, labels, trainer.budget, np.random.default_rng(seed).spawn(1)[0])


@pytest.mark.parametrize(
    ("name", "kernel", "classes"),
    [
        (name, kernel, 4 if kernel == RBF(0.4) else 2)
        for name in LEARNERS
        for kernel in KERNELS
        if name != "merging" or kernel == RBF(0.4)
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_blocks_make_the_steps_of_the_textbook(name, kernel, classes):
    X, labels = blobs(90 if name in ("projection", "merging") else 2 * BLOCKS[1] + 40, classes, seed=3)
    trainer = LEARNERS[name]
    if kernel.name in ("linear", "poly") and name == "projection":
        trainer = dataclasses.replace(trainer, budget=3 if kernel.name == "poly" else 2)  # of 6 and 2 dimensions
        X = X + 0.01
    expected = textbook(name, kernel, X, labels, trainer)
    fit = trainer.fit(task_of(kernel, X, labels))
    outputs = np.array([expected(x) for x in X])
    np.testing.assert_allclose(fit.model(X), outputs, rtol=0, atol=1e-6 * np.abs(outputs).max())
    assert fit.model.size == len(expected.points)
    assert fit.status is Status.PASSED
    assert fit.n_iter == labels.size


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("pieces", [1, BLOCKS[0] - 1, BLOCKS[0], 1000])
def test_a_stream_in_pieces_of_any_size_teaches_the_same(name, pieces):
    n = 100 if pieces == 1 else 300
    X, labels = blobs(n, 3)
    trainer = LEARNERS[name]
    whole = trainer.fit(task_of(RBF(0.4), X, labels))
    task = task_of(RBF(0.4), X, labels)
    state = trainer.begin(task)
    for start in range(0, n, pieces):
        some = slice(start, start + pieces)
        part = Task(HostRows(RBF(0.4), X[some]), task.targets[some], task.weights[some])
        state = trainer.learn(state, part, np.arange(part.rows.n))
    np.testing.assert_allclose(
        state.expansion(RBF(0.4))(X), whole.model(X), rtol=0, atol=1e-8 * np.abs(whole.model(X)).max()
    )
    assert (state.seen, state.moves) == (n, whole.state.moves)


@pytest.mark.parametrize("name", LEARNERS)
def test_learning_more_leaves_the_state_before_as_it_was(name):
    X, labels = blobs(200, 3)
    task = task_of(RBF(0.4), X, labels)
    trainer = LEARNERS[name]
    state = trainer.learn(trainer.begin(task), task, np.arange(100))
    before = state.points.copy(), state.coef.copy(), state.among.copy()
    first, again = (trainer.learn(state, task, np.arange(100, 200)) for _ in range(2))
    for array, kept in zip((state.points, state.coef, state.among), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    np.testing.assert_array_equal(first.coef, again.coef)
    np.testing.assert_array_equal(first.points, again.points)


# Budgets


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("budget", [2, 5])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_row_takes_a_learner_over_its_budget(name, budget, classes):
    X, labels = blobs(120, classes)
    trainer = dataclasses.replace(LEARNERS[name], budget=budget)
    task = task_of(RBF(0.4), X, labels)
    state = trainer.begin(task)
    for row in range(120):
        state = trainer.learn(state, task, np.array([row]))
        assert state.points.shape[0] == state.coef.shape[0] <= budget
    assert state.points.shape[0] == budget


@pytest.mark.parametrize("trainer", [Forgetron(6), RBP(6)], ids=lambda trainer: type(trainer).__name__)
def test_perceptrons_never_hold_a_point_too_many_not_even_within_a_step(trainer, monkeypatch):
    sizes, seat = [], Learner.seat

    def watched(self, *arguments):
        seat(self, *arguments)
        sizes.append(self.size)

    monkeypatch.setattr(Learner, "seat", watched)
    trainer.fit(task_of(RBF(0.4), *blobs(300, 3)))
    assert max(sizes) == 6


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("budget", [1, 0, -3, 2.5, "9"])
def test_a_budget_that_is_no_count_of_two_or_more_is_refused(name, budget):
    with pytest.raises(ValueError, match="budget must be a number of support vectors, 2 at least"):
        ONLINE[name](budget)


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("budget", [None, 1, 0.5])
def test_an_estimator_without_such_a_budget_is_refused(name, budget):
    X, labels = blobs(50, 2)
    with pytest.raises(ValueError, match=rf"trainer '{name}' keeps to a budget .* 2 at least, not {budget!r}"):
        SlimSVC(budget, trainer=name).fit(X, labels)


@pytest.mark.parametrize("name", ONLINE)
def test_a_run_without_a_budget_is_refused(name):
    with pytest.raises(ValueError, match="needs a budget"):
        ONLINE[name]().fit(task_of(RBF(0.4), *blobs(50, 2)))


def test_a_budget_of_the_estimator_below_that_of_the_trainer_is_left_to_the_reducer():
    X, labels = blobs(200, 2)
    slim = SlimSVC(5, trainer=Forgetron(40), random_state=0).fit(X, labels)
    assert slim.support_vectors_.shape[0] <= 5
    assert slim.path_ is not None
    kept = SlimSVC(trainer=Forgetron(30), random_state=0).fit(X, labels)
    assert kept.support_vectors_.shape[0] <= 30
    assert kept.path_ is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"passes": 0}, "passes must be"),
        ({"passes": 1.5}, "passes must be"),
        ({"lam": 0.0}, "lam must be"),
        ({"lam": float("nan")}, "lam must be"),
        ({"lam": "small"}, "lam must be"),
        ({"maintenance": "shrinking"}, "unknown maintenance 'shrinking'.*merging.*projection.*removal"),
    ],
    ids=str,
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        BSGD(10, **settings)


# Theorems


def noisy_line(n, seed, noise, burst):
    """Rows of length 1 near +e and -e; a share of the labels is wrong, in bursts or here and there."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    X = np.column_stack([y, rng.uniform(-0.3, 0.3, (n, 3))])
    wrong = np.arange(n) % 1000 < 1000 * noise if burst else rng.random(n) < noise
    return X / np.linalg.norm(X, axis=1)[:, None], np.where(wrong, -y, y)


@pytest.mark.parametrize("burst", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("seed", range(2))
def test_the_forgetron_keeps_its_mistake_bound(seed, noise, burst):
    """M <= 2 |u|^2 + 4 sum of hinge losses for |u| <= 1/4 sqrt((B + 1) / log(B + 1)), here with u along e."""
    budget = 100
    X, y = noisy_line(3000, seed, noise, burst)
    u = np.array([0.25 * np.sqrt((budget + 1) / np.log(budget + 1)), 0, 0, 0])
    state = Forgetron(budget, shuffle=False).fit(task_of(Linear(), X, (y > 0).astype(int))).state
    bound = 2 * u @ u + 4 * np.maximum(0, 1 - y * (X @ u)).sum()
    assert state.moves <= bound < 0.95 * y.size
    if noise and not burst:
        assert state.moves > budget  # points were forgotten


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kernel", [RBF(0.4), Poly(0.5, 1.0, 2)], ids=lambda kernel: kernel.name)
def test_the_damage_of_forgetting_stays_within_its_share_of_the_mistakes(kernel, classes):
    X, labels = blobs(400, classes, spread=2.0)
    task, trainer = task_of(kernel, X, labels), Forgetron(10)
    state = trainer.begin(task)
    for row in range(400):
        state = trainer.learn(state, task, np.array([row]))
        assert state.damage <= DAMAGE * state.moves * (1 + 1e-9)
    assert state.moves > 100


@given(a=st.floats(-50, 50), b=st.floats(0, 10), c=st.floats(-10, -0.01))
def test_the_fade_is_the_largest_that_the_damage_allows(a, b, c):
    phi = largest_phi(a, b, c)
    assert 0 < phi <= 1
    assert a * phi**2 + b * phi + c <= 1e-9
    above = np.linspace(phi, 1, 1001)[1:]
    assert phi == 1 or (a * above**2 + b * above + c > -1e-9).all()


@pytest.mark.parametrize("burst", [False, True])
def test_the_rbp_keeps_its_bound_on_average(burst):
    """E M (1 - U / sqrt B) <= sum of hinge losses + U sqrt(2 E M) for u of length U.

    With a point leaving at random, E <w', u> = (1 - 1/B) <w, u> and E |w|^2 <= B over the mistakes; summing the steps
    <w', u> >= (1 - 1/B) <w, u> + 1 - loss gives it, as in Cavallanti et al. 2007.
    """
    budget, U = 25, 1.1
    X, y = noisy_line(3000, 0, 0.05, burst)
    losses = np.maximum(0, 1 - U * y * X[:, 0]).sum()
    mistakes = np.mean(
        [RBP(budget, shuffle=False).fit(task_of(Linear(), X, (y > 0).astype(int), seed)).state.moves for seed in range(10)]
    )
    assert burst or mistakes > 2 * budget
    assert mistakes * (1 - U / np.sqrt(budget)) <= losses + U * np.sqrt(2 * mistakes)


@pytest.mark.parametrize("trainer", [Forgetron, RBP])
def test_separable_rows_teach_the_perceptrons_all_there_is(trainer):
    """Not more than |u|^2 mistakes, a budget of as many is never full, and in the end none."""
    X, y = noisy_line(2000, 0, 0.0, False)
    fit = trainer(10, passes=3).fit(task_of(Linear(), X, (y > 0).astype(int)))
    smallest = (y * X[:, 0]).min()
    assert fit.state.moves <= 1 / smallest**2
    assert (np.sign(fit.model(X).ravel()) == y).all()


def primal(fit, X, labels, lam, kernel):
    """lam / 2 |f|^2 + the mean loss of Crammer & Singer."""
    model = fit.model
    contest = Contest(model.coef.shape[1])
    margins, _ = contest.margins(model(X).T, labels)
    square = np.einsum("iq,ij,jq->", model.coef, kernel(model.points, model.points), model.coef)
    return lam / 2 * square + np.maximum(0, 1 - margins).mean()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_a_budget_for_all_rows_makes_budgeted_sgd_pegasos(maintenance, classes):
    X, labels = blobs(100, classes)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 100)
    trainer = BSGD(100, lam=0.02, shuffle=False, maintenance=maintenance)
    fit = trainer.fit(task_of(RBF(0.4), X, labels, weights=weights))
    pegasos = textbook_bsgd(RBF(0.4), X, labels, np.inf, 0.02, None, weights)
    np.testing.assert_allclose(fit.model(X), [pegasos(x) for x in X], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("maintenance", "allowed"), [("merging", 1.1), ("projection", 1.1)])
def test_a_small_budget_reaches_nearly_the_objective_of_no_budget(maintenance, allowed):
    X, labels = make_moons(1500, noise=0.2, random_state=0)
    kernel, task = RBF(1.0), lambda: task_of(RBF(1.0), X, labels)
    lam = 1 / 1500
    free, tight = (BSGD(b, maintenance=maintenance, passes=3).fit(task()) for b in (1500, 30))
    assert tight.model.size == 30
    assert free.model.size > 150
    objective = primal(free, X, labels, lam, kernel)
    assert primal(tight, X, labels, lam, kernel) <= allowed * objective


def test_lam_is_that_of_the_svm_by_default():
    X, labels = blobs(150, 2)
    by_c = BSGD(10, C=2.0).fit(task_of(RBF(0.4), X, labels))
    by_lam = BSGD(10, lam=1 / 300).fit(task_of(RBF(0.4), X, labels))
    np.testing.assert_array_equal(by_c.model.coef, by_lam.model.coef)


# Maintenance


@given(seed=st.integers(0, 10**6), m=st.integers(2, 12), q=st.integers(1, 4))
def test_the_best_merge_is_that_of_a_dense_search(seed, m, q):
    rng = np.random.default_rng(seed)
    C, far = rng.normal(size=(m, q)), rng.exponential(2.0, size=m)
    if seed % 3 == 0:
        C = np.abs(C)
    squares = (C**2).sum(axis=1)
    p = int(squares.argmin())
    far[p] = 0
    kernel = np.exp(-far)
    j, h = core.best_merge(p, squares, C @ C[p], kernel)

    def loss(j, h):
        u, v = kernel[j] ** ((1 - h) ** 2), kernel[j] ** (h**2)
        return (
            squares[p]
            + squares[j]
            + 2 * C[p] @ C[j] * kernel[j]
            - ((np.multiply.outer(u, C[p]) + np.multiply.outer(v, C[j])) ** 2).sum(-1)
        )

    dense = min(loss(other, np.linspace(0, 1, 2001)).min() for other in range(m) if other != p)
    assert j != p
    assert 0 <= h <= 0.5
    assert loss(j, np.array(h)) <= dense + 1e-12 * squares.max()


def test_a_point_out_of_reach_is_merged_with_nothing_but_leaves():
    squares, products = np.array([1.0, 4.0, 9.0]), np.array([1.0, 2.0, 3.0])
    assert core.best_merge(0, squares, products, np.array([1.0, 0.0, 1e-310])) == (1, 0.0)
    with pytest.raises(ValueError, match="no other to merge with"):
        core.best_merge(0, squares[:1], products[:1], np.ones(1))
    with pytest.raises(ValueError, match="equal lengths"):
        core.best_merge(0, squares, products[:2], np.ones(3))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("apart", [0.0, 5.0, 40.0])
def test_what_is_kept_of_points_and_outputs_is_what_computing_them_anew_gives(name, apart, monkeypatch):
    """Also for clouds so far apart that kernel values between them are 0."""
    read_block, checked = Learner.read_block, []

    def watched(self, block, *labels):
        read_block(self, block, *labels)
        m = self.size
        K = block.kernel(block.take(np.arange(block.n)), self.points)
        np.testing.assert_allclose(self.against[:m].T, K, atol=1e-9)
        np.testing.assert_allclose(self.outputs.T, K @ self.coef[:m], atol=1e-9 * max(np.abs(self.coef).max(), 1))
        if self.pairs:
            np.testing.assert_allclose(self.among[:m, :m], block.kernel(self.points, self.points), atol=1e-9)
        checked.append(m)

    monkeypatch.setattr(Learner, "read_block", watched)
    X, labels = blobs(400, 3)
    LEARNERS[name].fit(task_of(RBF(0.4), X + apart * (np.arange(400) % 5)[:, None], labels))
    assert checked == [8] * 13


@pytest.mark.parametrize("copies", [1, 3])
def test_an_inverse_is_found_where_points_repeat(copies):
    X = np.tile(blobs(6, 2)[0], (copies, 1))
    K = RBF(0.4)(X, X)
    R = inverse_factor(K)
    b = K @ np.arange(1.0, X.shape[0] + 1)
    np.testing.assert_allclose(K @ (R @ (R.T @ b)), b, rtol=1e-4)


@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_rows_that_repeat_are_no_trouble(maintenance):
    X, labels = blobs(40, 3)
    fit = BSGD(6, maintenance=maintenance).fit(task_of(RBF(0.4), np.tile(X, (5, 1)), np.tile(labels, 5)))
    assert np.isfinite(fit.model(X)).all()
    assert fit.model.size == 6


def test_a_kernel_that_is_not_positive_definite_can_be_projected():
    X, labels = blobs(200, 2)
    fit = BSGD(6).fit(task_of(Sigmoid(1.0, -1.0), X, labels))
    assert np.isfinite(fit.model(X)).all()


@pytest.mark.parametrize("kernel", [Linear(), Poly(), Laplacian(), Precomputed()], ids=lambda kernel: kernel.name)
def test_merging_is_for_the_gaussian_kernel_alone(kernel):
    X, labels = blobs(30, 2)
    with pytest.raises(ValueError, match=rf"{kernel.name}.*'projection' or 'removal', or kernel='rbf'"):
        BSGD(5, maintenance="merging").fit(task_of(kernel, X @ X.T, labels))


def test_the_default_maintenance_is_merging_where_it_can_be():
    assert BSGD(5).maintenance_for(RBF()) == "merging"
    assert BSGD(5).maintenance_for(Poly()) == "projection"
    assert BSGD(5, maintenance="removal").maintenance_for(RBF()) == "removal"


# Rows of every form


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_rows_give_the_model_of_dense_rows(name, classes):
    rng = np.random.default_rng(0)
    X = rng.random((300, 30)) * (rng.random((300, 30)) < 0.1)
    labels = (X @ rng.normal(size=(30, classes))).argmax(axis=1)
    dense, sparse = (LEARNERS[name].fit(task_of(RBF(0.4), form(X), labels)) for form in (np.asarray, csr_array))
    np.testing.assert_allclose(sparse.model.points.toarray(), dense.model.points, atol=1e-9)
    np.testing.assert_allclose(sparse.model.coef, dense.model.coef, atol=1e-9 * np.abs(dense.model.coef).max())


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "merging"])
def test_a_precomputed_kernel_gives_the_model_of_its_function(name):
    X, labels = blobs(200, 3)
    K = RBF(0.4)(X, X)
    direct, looked_up = (LEARNERS[name].fit(task_of(*pair, labels)) for pair in ((RBF(0.4), X), (Precomputed(), K)))
    np.testing.assert_array_equal(X[looked_up.model.points.ravel()], direct.model.points)
    np.testing.assert_allclose(looked_up.model(K), direct.model(X), atol=1e-8 * np.abs(direct.model(X)).max())


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "merging"])
def test_points_are_rows_to_the_last_bit(name):
    X, labels = blobs(200, 2)
    for rows in (X, X.astype(np.float32)):
        model = LEARNERS[name].fit(task_of(RBF(0.4), rows, labels)).model
        assert model.points.dtype == rows.dtype
        assert {tuple(point) for point in model.points} <= {tuple(row) for row in rows}


def test_rows_of_no_length_are_no_trouble_to_the_perceptrons():
    X, labels = blobs(100, 2)
    X[::3] = 0.0
    for trainer in (Forgetron(5), RBP(5)):
        assert np.isfinite(trainer.fit(task_of(Linear(), X, labels)).model(X)).all()


# As trainers of SlimSVC


@pytest.mark.parametrize(("name", "least"), [("forgetron", 0.8), ("rbp", 0.8), ("bsgd", 0.93)])
def test_digits_are_learned_in_a_pass_or_two(name, least):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order] / 16, y[order]
    slim = SlimSVC(200, trainer=ONLINE[name](passes=2), C=10.0, random_state=0).fit(X[:1300], y[:1300])
    assert slim.support_vectors_.shape[0] <= 200
    assert slim.dual_coef_.shape[0] == 10
    assert slim.path_ is None
    assert slim.n_iter_ == 2600
    assert slim.status_ is Status.PASSED
    assert slim.score(X[1300:], y[1300:]) >= least


@pytest.mark.parametrize("name", ONLINE)
def test_a_random_state_makes_results_repeatable(name):
    X, labels = blobs(300, 3)
    models = [SlimSVC(10, trainer=name, random_state=seed).fit(X, labels) for seed in (4, 4, 5)]
    first, again, other = (model.decision_function(X) for model in models)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("name", ["forgetron", "rbp"])
def test_weights_are_refused_by_learners_that_have_none(name):
    X, labels = blobs(60, 2)
    weights = 1.0 + np.arange(60) % 2
    for settings, by_row in (({"class_weight": {0: 2.0}}, None), ({}, weights)):
        with pytest.raises(ValueError, match=r"no sample_weight or class_weight.*bsgd"):
            SlimSVC(5, trainer=name, **settings).fit(X, labels, sample_weight=by_row)


def test_a_heavy_class_is_preferred_by_budgeted_sgd():
    X, labels = blobs(400, 2, spread=2.0)
    shares = [
        SlimSVC(20, trainer="bsgd", class_weight={1: weight}, random_state=0).fit(X, labels).predict(X).mean()
        for weight in (0.1, 1.0, 10.0)
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.4 < 0.6 < shares[2]


@pytest.mark.parametrize("name", LEARNERS)
def test_kernel_evaluations_are_counted(name):
    X, labels = blobs(300, 3)
    seen = []

    class Counting(RBF):
        def tail(self, G, a, b, *more, **settings):
            seen.append(G.size)
            return super().tail(G, a, b, *more, **settings)

    task = task_of(Counting(0.4), X, labels)
    LEARNERS[name].fit(task)
    assert task.rows.meter.evaluations == sum(seen) <= 300 * (8 + BLOCKS[0])


def test_progress_is_reported_from_nothing_to_all():
    X, labels = blobs(500, 2)
    told = []
    task = dataclasses.replace(task_of(RBF(0.4), X, labels), run=Run(lambda phase, done: told.append((phase, done))))
    RBP(5, passes=3).fit(task)
    shares = [share for _, share in told]
    assert {phase for phase, _ in told} == {"train"}
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(a <= b for a, b in itertools.pairwise(shares))


@pytest.mark.parametrize("name", LEARNERS)
def test_rows_far_from_the_origin_teach_the_same(name):
    """Also in float32, since kernel values are float64 and the block is centred first. Merged points are rounded there."""
    X, labels = blobs(300, 3)
    X = np.round(X * 16) / 16  # exact in float32, with and without the offset
    dtype = np.float64 if name == "merging" else np.float32
    near = LEARNERS[name].fit(task_of(RBF(0.4), X, labels)).model
    far = LEARNERS[name].fit(task_of(RBF(0.4), (X + 2.0**18).astype(dtype), labels)).model
    np.testing.assert_allclose(far.coef, near.coef, atol=1e-6 * np.abs(near.coef).max())
