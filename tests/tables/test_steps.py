"""What is read of scikit-learn's transformers does what they do: in Python, in C and in JavaScript, holes included."""

import ctypes
import json
import math
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from slimsvm import SlimSVR, export, load, runtime, save, table_preparation
from slimsvm.ship.preparation_c import CTable
from slimsvm.ship.source import artefact_of
from slimsvm.tables.folding import preparation_of
from slimsvm.tables.steps import READERS
from tools.targets import STRICT, missing

NUMBERS, WORDS = ["size", "weight", "double", "rank"], ["colour", "place of birth"]


def table(n=80, seed=0, *, new=False):
    """Numbers with holes and equal values, and words; new rows have words and numbers that the others have not."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"size": rng.normal(size=n).round(1), "weight": rng.gamma(2, size=n), "rank": rng.integers(3, size=n)}
    )
    frame["double"] = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n) * 1e3)
    frame["size"] = frame["size"].where(rng.uniform(size=n) < 0.9)
    colours = ["red", "blue", 'gr"een', "naïve", "x"]
    frame["colour"] = rng.choice(colours, p=[0.4, 0.3, 0.2, 0.05, 0.05], size=n)
    frame["place of birth"] = rng.choice(["a\\b", "??/", "c"], size=n)
    frame.loc[rng.uniform(size=n) < 0.1, "place of birth"] = None
    if new:
        frame.loc[::7, "colour"] = "never seen"
        frame.loc[::5, "size"] = 7.7
        frame.loc[::6, "place of birth"] = None
        frame.loc[::9, "double"] = -1e5
    return frame[["colour", *NUMBERS, "place of birth"]]


def numbers(*steps):
    return ColumnTransformer([("numbers", make_pipeline(SimpleImputer(), *steps), NUMBERS)])


def words(encoder, columns=WORDS):
    return ColumnTransformer([("words", encoder, columns)])


UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
NO_X = SimpleImputer(missing_values="x", strategy="constant", fill_value="y")
ORDINAL = OrdinalEncoder(**UNKNOWN)
RARE = {"handle_unknown": "infrequent_if_exist", "sparse_output": False}
PREPARATIONS = {
    "table": table_preparation(),
    "imputers": ColumnTransformer(
        [
            ("median", SimpleImputer(strategy="median", add_indicator=True), NUMBERS),
            ("value", make_pipeline(SimpleImputer(missing_values=0, strategy="constant", fill_value=9)), ["rank"]),
            ("word", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), WORDS),
            ("x", make_pipeline(NO_X, ORDINAL), WORDS[:1]),
            ("holes", MissingIndicator(), ["size"]),
        ],
        sparse_threshold=0,
    ),
    "one-hot": words(OneHotEncoder(handle_unknown="ignore", sparse_output=False)),
    "dropped": words(OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False)),
    "infrequent": words(OneHotEncoder(min_frequency=8, **RARE)),
    "dropped of infrequent": words(OneHotEncoder(drop="if_binary", max_categories=2, **RARE)),
    "numbers that are categories": words(OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["rank", "size"]),
    "ordinal": words(OrdinalEncoder(encoded_missing_value=-2, **UNKNOWN), [*WORDS, "rank"]),
    "ordinal infrequent": words(OrdinalEncoder(min_frequency=8, encoded_missing_value=-2, **UNKNOWN)),
    "target": words(TargetEncoder(random_state=0), [*WORDS, "rank"]),
    "quantile": numbers(QuantileTransformer(n_quantiles=20)),
    "normal": numbers(QuantileTransformer(n_quantiles=20, output_distribution="normal")),
    "yeo-johnson": numbers(PowerTransformer()),
    "box-cox": ColumnTransformer([("weight", PowerTransformer("box-cox", standardize=False), ["weight"])]),
    "norms": numbers(Normalizer("l1"), Normalizer("max"), Normalizer()),
    "rotations": numbers(StandardScaler(), PCA(3, whiten=True), TruncatedSVD(2)),
    "products": numbers(RobustScaler(), PolynomialFeatures(3, interaction_only=True), VarianceThreshold()),
    "selected": numbers(MinMaxScaler(clip=True), PolynomialFeatures(2), SelectKBest(k=5)),
    "functions": numbers(FunctionTransformer(np.abs), FunctionTransformer(np.log1p), FunctionTransformer()),
    "union": ColumnTransformer(
        [("both", make_pipeline(SimpleImputer(), FeatureUnion([("a", StandardScaler()), ("b", PCA(2))])), NUMBERS[:3])],
        remainder="drop",
    ),
}  # fmt: skip


@pytest.fixture(params=PREPARATIONS)
def fitted(request):
    X = table()
    y = X["weight"] + (X["colour"] == "red")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown categories, where some are dropped
        yield (
            make_pipeline(PREPARATIONS[request.param], SlimSVR(5, trainer=None, random_state=0)).fit(X, y),
            table(40, 1, new=True),
        )


def test_python_c_javascript_and_files_agree_on_every_row(fitted, tmp_path):
    model, X = fitted
    wanted, rows = model.predict(X), np.asarray(model[:-1].transform(X))
    artefact = artefact_of(model)
    if artefact.preparation is not None:
        np.testing.assert_allclose(artefact.preparation(X), rows, rtol=1e-9, atol=1e-9)
    scale = np.abs(wanted).max()
    save(model, tmp_path / "model.slim")
    export(model, tmp_path / "model.json")
    np.testing.assert_allclose(load(tmp_path / "model.slim").predict(X), wanted, rtol=0, atol=1e-12 * scale)
    for run in (runtime(model), runtime(tmp_path / "model.slim"), runtime(tmp_path / "model.json")):
        given = X if run.preparation is not None else X.drop(columns=WORDS).to_numpy()
        np.testing.assert_allclose(run(given), wanted, rtol=0, atol=1e-8 * scale)
    if not missing("node"):
        np.testing.assert_allclose(run_javascript(model, X, tmp_path), wanted, rtol=0, atol=1e-5 * scale)
    if not missing("gcc"):
        np.testing.assert_allclose(run_c(model, X, tmp_path), wanted, rtol=0, atol=1e-4 * scale)


def run_javascript(model, X, folder):
    export(model, folder / "model.mjs")
    rows = [{name: None if pd.isna(cell) else cell for name, cell in row.items()} for row in X.to_dict("records")]
    program = (
        'import { predict } from "./model.mjs"; console.log(JSON.stringify(JSON.parse(process.argv[2]).map(predict)));'
    )
    (folder / "run.mjs").write_text(program)
    ran = subprocess.run(["node", folder / "run.mjs", json.dumps(rows)], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


def run_c(model, X, folder):
    export(model, folder / "model.c")
    subprocess.run(["gcc", *STRICT, "-shared", "-fPIC", folder / "model.c", "-o", folder / "model.so", "-lm"], check=True)
    library, preparation = ctypes.CDLL(str(folder / "model.so")), artefact_of(model).preparation
    library.model_predict.restype = ctypes.c_float
    made = CTable(preparation, "model", 0)
    kinds = [ctypes.c_int if column.kind == "word" else ctypes.c_float for column in preparation.columns]
    row_type = type("Row", (ctypes.Structure,), {"_fields_": list(zip(made.fields, kinds, strict=True))})
    found = []
    for record in X.to_dict("records"):
        row = row_type()
        for field, column in zip(made.fields, preparation.columns, strict=True):
            cell = record[column.name]
            if column.kind == "word":
                cell = getattr(library, f"model_{field}_code")(None if pd.isna(cell) else ctypes.c_char_p(cell.encode()))
            setattr(row, field, math.nan if pd.isna(cell) else cell)
        found.append(library.model_predict(ctypes.byref(row)))
    return found


def test_every_kind_of_transformer_is_in_a_test():
    def names(step):
        inside = [each[1] for part in ("steps", "transformers", "transformer_list") for each in getattr(step, part, ())]
        return {type(step).__name__}.union(*map(names, inside))

    assert set().union(*map(names, PREPARATIONS.values())) >= READERS.keys() - {"MaxAbsScaler"}


def test_normal_quantiles_are_those_of_scipy():
    from scipy.stats import norm

    from slimsvm.tables.steps.quantile import REACH, probit

    p = np.r_[10.0 ** -np.arange(1, 7), np.linspace(1e-6, 1 - 1e-6, 1001)]
    np.testing.assert_allclose(probit(p), norm.ppf(p), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(probit(np.array([0.0, 1.0])), [-REACH, REACH])
    np.testing.assert_allclose(REACH, -norm.ppf(1e-7 - np.spacing(1)))


def test_rows_of_every_form_are_prepared():
    X = table()
    preparation = preparation_of([table_preparation().fit(X)], X.shape[1], tuple(X.columns))
    wanted, first = preparation(X), X.iloc[0].to_dict()
    np.testing.assert_array_equal(preparation(X.to_numpy(dtype=object)), wanted)
    np.testing.assert_array_equal(preparation(X[X.columns[::-1]].assign(more=1)), wanted)
    np.testing.assert_array_equal(preparation(X.to_dict("records")), wanted)
    np.testing.assert_array_equal(preparation(X.to_dict("list")), wanted)
    np.testing.assert_array_equal(preparation(first), wanted[0])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"size": 1.0}, "no 'colour'"),
        (np.zeros((2, 3)), "3 columns"),
        (table().drop(columns="size"), "no column 'size'"),
        (table().assign(size="big"), "takes numbers"),
    ],
)
def test_rows_without_a_column_or_with_words_for_numbers_are_refused(rows, words):
    X = table()
    preparation = preparation_of([table_preparation().fit(X)], X.shape[1], tuple(X.columns))
    with pytest.raises((TypeError, ValueError), match=words):
        preparation(rows)


def test_fields_of_c_are_no_keywords_and_all_different():
    X = pd.DataFrame({name: ["a", "b", "b", "a"] for name in ("int", "a b", "a-b", "9", "ü", "class", "MISSING")})
    made = CTable(preparation_of([table_preparation().fit(X)], X.shape[1], tuple(X.columns)), "model", 0)
    assert len(set(made.fields)) == 7
    assert "int" not in made.fields
    names = [name for each in made.constants.values() for name in each]
    assert len(set(names)) == len(names)


def test_transformers_that_cannot_be_shipped_are_named():
    from sklearn.preprocessing import SplineTransformer

    X = np.random.default_rng(0).normal(size=(30, 2))
    model = make_pipeline(SplineTransformer(), SlimSVR(3, trainer=None)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"SplineTransformer; there are .*OneHotEncoder"):
        artefact_of(model)
