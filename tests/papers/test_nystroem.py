"""The Nyström reducer against scikit-learn's Nystroem with LinearSVC on the same landmarks."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.kernel_approximation import Nystroem as TheirNystroem
from sklearn.svm import LinearSVC

from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Precomputed, Sigmoid
from slimsvm.model import Status
from slimsvm.papers.nystroem import LANDMARKS, Nystroem
from slimsvm.rows.host import HostRows

#: the parameters of scikit-learn for each of our kernels
PARAMETERS = {
    RBF(0.5): {"kernel": "rbf", "gamma": 0.5},
    Sigmoid(0.1, 0.2): {"kernel": "sigmoid", "gamma": 0.1, "coef0": 0.2},
}


@pytest.fixture
def iris(make_task):
    """Three classes with weights."""
    X, labels = load_iris(return_X_y=True)
    return make_task(RBF(0.5), X, OneVsRest(3).encode(labels), np.random.default_rng(1).uniform(0.5, 2.0, 150))


@pytest.mark.parametrize("kernel", PARAMETERS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("landmarks", LANDMARKS)
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_it_is_what_scikit_learn_makes_of_the_same_landmarks(kernel, landmarks, C, make_blobs, make_task):
    X, y = make_blobs(150)
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 150)
    path = Nystroem(C, landmarks).path(make_task(kernel, X, y, weights), [3, 12])
    # for a kernel that is not positive the norm of a part of the landmarks is not the part of the norm
    models = path.models if kernel == RBF(0.5) or landmarks == "k-means" else path.models[-1:]
    for model in models:
        theirs = TheirNystroem(n_components=model.size, random_state=0, **PARAMETERS[kernel]).fit(model.points)
        svm = LinearSVC(C=C, loss="squared_hinge", dual=False, tol=1e-10, max_iter=10**5)
        svm.fit(theirs.transform(X), y, sample_weight=weights)
        np.testing.assert_allclose(model(X).ravel(), svm.decision_function(theirs.transform(X)), atol=2e-5)


def test_landmarks_are_means_of_the_rows(make_task):
    """Four clouds far apart: k-means finds them, and their centres are the landmarks."""
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
    X = np.repeat(centres, 25, axis=0) + np.random.default_rng(0).normal(size=(100, 2)) / 10
    model = Nystroem().path(make_task(RBF(0.1), X, np.repeat([1.0, -1.0, -1.0, 1.0], 25)), [4]).models[-1]
    means = X.reshape(4, 25, 2).mean(axis=1)
    np.testing.assert_allclose(model.points[np.lexsort(model.points.T)], means[np.lexsort(means.T)], atol=1e-9)


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_several_outputs_share_their_landmarks_and_have_each_its_own_svm(landmarks, iris):
    model = Nystroem(landmarks=landmarks).path(iris, [10]).models[-1]
    assert model.coef.shape == (10, 3)
    theirs = TheirNystroem(n_components=10, random_state=0, kernel="rbf", gamma=0.5).fit(model.points)
    features = theirs.transform(iris.rows.given.rows())
    for column in range(3):
        svm = LinearSVC(dual=False, tol=1e-10).fit(features, iris.targets[:, column], sample_weight=iris.weights)
        np.testing.assert_allclose(model(iris.rows.given.rows())[:, column], svm.decision_function(features), atol=2e-5)


def test_a_precomputed_kernel_has_random_landmarks(iris):
    K = RBF(0.5)(iris.rows.given.rows(), iris.rows.given.rows())
    both = []
    for kernel, rows in ((Precomputed(), K), (RBF(0.5), iris.rows.given.rows())):
        task = dataclasses.replace(iris, rows=HostRows(kernel, rows), rng=np.random.default_rng(7))
        both.append(Nystroem(landmarks="random").path(task, [2, 9]).models)
    means = dataclasses.replace(iris, rows=HostRows(Precomputed(), K), rng=np.random.default_rng(7))
    assert Nystroem.takes(Precomputed())
    for numbers, rows, asked_for_means in zip(*both, Nystroem().path(means, [2, 9]).models, strict=True):
        np.testing.assert_allclose(numbers(K), rows(iris.rows.given.rows()), atol=1e-8)
        np.testing.assert_array_equal(numbers.points, asked_for_means.points)


def test_fewer_distinct_rows_than_landmarks_end_the_path(make_blobs, make_task):
    X, y = make_blobs(8)
    path = Nystroem().path(make_task(RBF(0.5), np.repeat(X, 5, axis=0), np.repeat(y, 5)), [3, 20, 30])
    assert path.sizes == [3, 8]
    assert path.status is Status.EXHAUSTED


def test_means_of_a_sample_of_the_rows(iris):
    path = Nystroem(sample=10).path(iris, [4, 25])
    assert path.sizes == [4, 25]


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_sparse_rows_give_the_same_models_and_so_does_a_seed(landmarks, iris, form):
    def models(X):
        task = dataclasses.replace(iris, rows=HostRows(iris.rows.kernel, X), rng=np.random.default_rng(5))
        return Nystroem(landmarks=landmarks).path(task, [2, 6]).models

    X = iris.rows.given.rows()
    for one, two, again in zip(models(X), models(form(X)), models(form(X)), strict=True):
        np.testing.assert_allclose(two(form(X)), one(X), atol=1e-6)
        np.testing.assert_array_equal(two.coef, again.coef)


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_rows_of_one_side(landmarks, make_blobs, make_task):
    X, _ = make_blobs(30)
    for model in Nystroem(100.0, landmarks).path(make_task(RBF(0.5), X, np.ones(30)), [1, 5]).models:
        assert (model(X) > 0.9).all()


def test_when_time_is_up_there_is_one_model(iris):
    path = Nystroem(time_limit=1e-9).path(iris, [3, 5, 9])
    assert path.sizes == [3]
    assert path.status is Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"C": -1.0}, "C must be"), ({"landmarks": "best"}, "unknown landmarks 'best'"), ({"sample": 0}, "sample must be")],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Nystroem(**settings)
