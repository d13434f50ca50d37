"""SlimSVC: kernel support vector classification on a budget of support vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..goals import CLASSIFIERS, Goal, OneVsOne
from ..goals.decision import Decision
from ..kernels import Array, Matrix
from ..parameters import estimator, parameter
from ..rows.prediction import kernel_values
from ..rows.protocol import Meter
from ..rows.threads import blocks
from .base import MOST_OUTPUTS, KernelMachine, Labelled, fit_reporting
from .methods import learns_streams
from .streams import learn_batch
from .validation import check_classes, class_weights, prediction_rows

#: with at least this many classes, a DAG computes only the outputs that it needs; with fewer, one product of all is faster
LAZY_CLASSES = 26


def has_probabilities(estimator: Any) -> bool:
    """Return True if the estimator has probabilities, else raise AttributeError."""
    if getattr(estimator, "calibration_", None) is None and estimator.calibration is None:
        raise AttributeError("probabilities need calibration='sigmoid', 'isotonic' or 'temperature', given before fit")
    return True


@estimator
class SlimSVC(ClassifierMixin, KernelMachine):
    """Kernel support vector classification with a budget of support vectors.

    Trains the exact C-SVM, as `sklearn.svm.SVC` does, and shrinks it to a budget; or, with trainer=None, fits a small model
    directly to the labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        Rows of X, or other points if the reducer moves them. Column numbers (n_SV, 1) for a precomputed kernel.
    support_ : ndarray of shape (n_SV,)
        Their row numbers in X; only if they are rows of X. In the full model they are sorted by class, as in `SVC`.
    dual_coef_ : ndarray of shape (n_outputs, n_SV)
        One row for two classes. With more, one per pair of classes in the full model (as SVC trains it), and one per
        class with a budget or tolerance, since the outputs then share a few support vectors.
    intercept_ : ndarray of shape (n_outputs,)
        The bias of each output.
    coef_ : ndarray of shape (n_outputs, n_features)
        The weights of the features; only for the linear kernel.
    class_weight_ : ndarray of shape (n_classes,)
        The factors of C by class.
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class: a point counts for the class that its coefficients favour most.
    calibration_ : Calibration
        The map from scores to probabilities; None without `calibration`.
    path_ : Path
        The models of growing size with their validation errors; None for the full model. `path_[i]` is one of them, `at`
        returns an estimator with it, and `path_.to_dict()` has columns for a table. They were fitted to the training rows
        of the first fold. Some reducers then refine the chosen model on all rows, validation rows included, unless that
        makes its error on all rows clearly worse. Its validation error remains the estimate.
    n_kernel_evals_ : int
        Kernel values computed.
    n_iter_ : int
        Steps of training, of all outputs together; 0 after compress and with trainer=None.
    status_ : Status
        How training ended. With trainer=None, and after compress to a smaller model, how the path ended.
        Status.INTERRUPTED if Ctrl-C ended the search for a small model, or exact training.
    device_ : str
        Where the model was fitted: what `device="auto"` chose. Predictions use it too. Not saved in files.
    history_ : list of dict
        How good the model was after how many seconds: entries with `phase`, `seconds`, and what the trainer measures (the
        `gap`; the relative `gap` and validation `error` of sbp; the `online_error` of trainers that learn row by row, of
        rows before they were learned) or the `size` and validation `error` of a small model. `pandas.DataFrame` takes them
        as they are. Not saved in files.
    fit_status_ : int
        0 if training ended as planned, 1 if it was cut short.
    shape_fit_ : tuple of int
        The shape of X in fit.
    feature_range_ : ndarray of shape (2, n_features)
        The least and the largest number of each feature in fit, for exports in integers; only after dense rows.
    model_ : Expansion
        The fitted function itself.
    goal_ : Goal
        What it is for: the coding of classes, regression or novelty detection; its `decode` makes predictions of outputs.
    stream_ : Stream
        What `partial_fit` continues from; only with trainers that learn online.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the features, if X had names that are strings.

    See Also
    --------
    compress : Shrink an SVM that is already trained.

    Notes
    -----
    docs/svc.md lists what differs from `SVC`, with the reasons. Settings of a trainer or reducer can be set and searched as
    parameters: `GridSearchCV(SlimSVC(16), {"reducer__steps": [20, 50]})`.

    A call of `fit` or `partial_fit` that fails does not change the estimator. Nor does Ctrl-C, unless `fit` has found a
    model by then: small ones, or what there is of an exact model of two classes. The estimator keeps the best of them, its
    `status_` is Status.INTERRUPTED, and the call ends with `slimsvm.Interrupted`, a KeyboardInterrupt.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SlimSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SlimSVC(budget=6, random_state=0).fit(X, y)
    >>> len(svc.support_vectors_) <= 6
    True
    >>> svc.predict(X[:2])
    array([0, 0])
    """

    _: KW_ONLY
    C: float = parameter("C")
    class_weight: dict[Any, float] | str | None = parameter("class_weight")
    multiclass: str | None = parameter("multiclass")
    calibration: str | None = parameter("calibration")
    decision_function_shape: str = parameter("decision_function_shape")
    break_ties: bool = parameter("break_ties")

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None, *, probabilities: Any = None) -> SlimSVC:
        """Train the full model and shrink it if a budget or tolerance is set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows; the kernel matrix for kernel="precomputed".
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C by row. A row of weight 0 counts as absent.
        probabilities : array-like of shape (n_samples, n_classes), default=None
            What a small model is fitted to in place of y: the probability of each class of `np.unique(y)` for each row, as
            a large model gives them. They need trainer=None, the reducer "slim" and one output for each class. Models are
            still judged by y on validation rows.

        Returns
        -------
        self : SlimSVC
            The fitted estimator.
        """
        return fit_reporting(self, X, y, sample_weight, probabilities=probabilities)

    @available_if(learns_streams)
    def partial_fit(self, X: Matrix, y: Any, classes: Any = None, sample_weight: Any = None) -> SlimSVC:
        """Learn from another batch of a stream, row by row in the order given; only for trainers that learn online.

        The first call fixes the settings: its rows determine gamma="scale", and the n of trainer="bsgd". After `fit`,
        a stream continues from the fitted model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the batch.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that the stream will have. Required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for trainers that take them.

        Returns
        -------
        self : SlimSVC
            The fitted estimator.
        """
        return learn_batch(self, X, y, sample_weight, classes)

    def decision_function(self, X: Matrix) -> Array:
        """Return the scores of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * (n_classes - 1) / 2)
            For two classes one score, positive for the second class. Otherwise one per class, or one per pair of classes,
            positive for the first of the two, with decision_function_shape="ovo". The largest score per class names the
            class that is predicted, except for equal votes in a one-vs-one model without `break_ties`.
        """
        pairs = self.decision_function_shape == "ovo"
        return self._read(X, lambda outputs: self.goal_.pair_scores(outputs) if pairs else self.goal_.scores(outputs))

    def predict(self, X: Matrix) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels; with `calibration`, those of the largest probabilities.
        """
        if self.break_ties and self.decision_function_shape == "ovo" and len(getattr(self, "classes_", ())) > 2:
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo': ties are broken by the scores of the "
                "classes, which 'ovr' gives"
            )
        if getattr(self, "calibration_", None) is not None:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        numbers = self._classes(X)  # raises an error for an unfitted estimator
        return self.classes_[numbers]

    @available_if(has_probabilities)
    def predict_proba(self, X: Matrix) -> Array:
        """Return the probability of each class; only with `calibration`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The probabilities, in the order of `classes_`. `predict` returns the class of the largest.
        """
        return self._read(X, lambda outputs: self.calibration_(self.goal_.scores(outputs)))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Matrix) -> Array:
        """Return the logarithm of the probability of each class; only with `calibration`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The logarithms, in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def _classes(self, X: Matrix) -> Array:
        """Return the class number of each row; a DAG of shared support vectors computes only the outputs that it needs."""
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        model = self.model_
        lazy = self.goal_.decision is Decision.DAG and self.classes_.size >= LAZY_CLASSES and self._used_device == "cpu"
        if not lazy or not isinstance(model.coef, np.ndarray) or model.size == 0:
            return self._read(X, lambda outputs: self.goal_.decode(outputs))
        X = prediction_rows(self, X)
        count = max(MOST_OUTPUTS // model.size, 1)
        return np.concatenate([self._walked(X[block]) for block in blocks(X.shape[0], count)])

    def _walked(self, X: Matrix) -> Array:
        """Return the class numbers of some rows by a DAG: all kernel values, but only the outputs that each row needs."""
        model = self.model_
        values = kernel_values(model.kernel, X, model.points, model.coef, Meter(), model.metric)
        return self.goal_.walk(X.shape[0], lambda rows, column: values[rows] @ model.coef[:, column] + model.bias[column])

    def _labelled(self, y: Array, weights: Array, *, whole: bool) -> Labelled:
        """Return class numbers and the goal: one output per class, or per pair of classes in the full model, like SVC."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        check_classes(self.classes_)
        goal = self._coding(self.classes_.size, whole=whole)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, y)
        return Labelled(goal, labels, weights * self.class_weight_[labels])

    def _coding(self, n_classes: int, *, whole: bool) -> Goal:
        """Return the goal for `n_classes` classes; a small model has one output per class."""
        if self.multiclass not in (None, *CLASSIFIERS):
            raise ValueError(f"unknown multiclass {self.multiclass!r}; there are {sorted(CLASSIFIERS)}, or None")
        name = self.multiclass or ("ovo" if whole else "ovr")
        return OneVsOne(n_classes, break_ties=bool(self.break_ties)) if name == "ovo" else CLASSIFIERS[name](n_classes)
