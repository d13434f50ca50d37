"""Write a folder of small models with the slimsvm that is installed: `python make_models.py FOLDER`.

Run once for each release, and whenever a format changes, by that version itself: files of every version stay loadable.
Uses public names only, those of the first version, so that old code can run it.
"""

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import slimsvm

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
ROWS = X[::7]


def with_metric(X, Y):
    """Return a model with learned factors and widths, by versions that have them."""
    try:
        from slimsvm.metric import Metric
    except ImportError:
        return {}
    model = slimsvm.SlimSVC(5, gamma=0.5, reducer="spsvm", random_state=0).fit(X, Y)
    factors, widths = (np.linspace(0.5, 2.0, count) for count in reversed(model.model_.points.shape))
    model.model_ = replace(model.model_, metric=Metric(factors, widths))
    return {"metric": model}


def with_projection(X, Y):
    """Return a model with a learned projection, by versions that have them."""
    from slimsvm.metric import Metric

    if not hasattr(Metric, "projection"):
        return {}
    plane = X @ np.eye(4)[:, :2]
    model = slimsvm.SlimSVC(5, gamma=0.5, reducer="spsvm", random_state=0).fit(X, Y)
    inside = slimsvm.SlimSVC(5, gamma=0.5, reducer="spsvm", random_state=0).fit(plane, Y).model_
    model.model_ = replace(inside, metric=Metric(projection=np.eye(4)[:, :2]))
    model._support = None
    return {"projection": model}


def with_table(X, Y):
    """Return a Pipeline with another transformer for each column, by versions that save them."""
    if not hasattr(slimsvm, "distill"):  # which came with them
        return {}
    columns = [("a", StandardScaler(), [0, 1]), ("b", OneHotEncoder(handle_unknown="ignore"), [2])]
    prepared = ColumnTransformer(columns, remainder="passthrough")
    svc = slimsvm.SlimSVC(5, gamma=0.5, reducer="spsvm", random_state=0)
    return {"table": make_pipeline(prepared, svc).fit(X, Y)}


def with_limits(X, Y):
    """Return a model with limits on its size and time, for tables of 8 bits, by versions that have them."""
    if "precision" not in slimsvm.SlimSVC().get_params():
        return {}
    limits = (5, "4 KB", "1 ms")
    return {"limits": slimsvm.SlimSVC(limits, precision="int8", gamma=0.5, reducer="spsvm", random_state=0).fit(X, Y)}


def models():
    """Return models of each kernel, coding, scaler and kind of labels, by name."""
    two, sparse = Y > 0, np.where(X > 1.0, X, 0.0)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[Y]
    learned = with_metric(X, Y)
    more = with_projection(X, Y) | with_limits(X, Y) | with_table(X, Y)
    return (learned and learned | more) | {
        "rbf": slimsvm.SlimSVC(gamma=0.5, C=2.0).fit(X, Y),
        "linear-two": slimsvm.SlimSVC(kernel="linear").fit(X, two),
        "poly-names": slimsvm.SlimSVC(kernel="poly", degree=2, gamma=0.1, coef0=1.0).fit(sparse, names),
        "budget": slimsvm.SlimSVC(5, gamma=0.5, reducer="spsvm", random_state=0).fit(X, Y),
        "sparse": slimsvm.SlimSVC(gamma=0.5).fit(csr_matrix(np.where(X > 3.0, X, 0.0)), Y),
        "scaled": make_pipeline(StandardScaler(), slimsvm.SlimSVC(gamma=0.2)).fit(X, Y),
    }


def main(folder):
    """Write each model in each format that can hold it, and the answers to expect."""
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, model in models().items():
        slimsvm.save(model, folder / f"{name}.slim")
        if hasattr(slimsvm, "export"):
            for kind in ("json", "libsvm") if name in ("rbf", "linear-two", "budget") else ("json",):
                with suppress(ValueError):  # this version cannot export it
                    slimsvm.export(model, folder / f"{name}.{kind}", kind)
        rows = ROWS[:, : model.n_features_in_]
        scores = getattr(model, "decision_function", model.predict)(rows)
        expected[name] = {"rows": rows.tolist(), "scores": scores.tolist(), "labels": model.predict(rows).tolist()}
    document = {"slimsvm": slimsvm.__version__, "expected": expected}
    (folder / "expected.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
