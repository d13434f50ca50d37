"""scikit-learn's own tests of SVC, SVR and OneClassSVM, run with SlimSVC, SlimSVR and SlimOneClassSVM in their place.

The tests are those of the installed version. What they expect of the words of errors and warnings is left out. Those in
NOT_FOR_US are skipped, with the reason; docs/svc.md has the same reasons for users.
"""

import importlib.util
import inspect
import re

import pytest
import sklearn
from sklearn import svm
from sklearn.utils.fixes import parse_version

import slimsvm

if parse_version(sklearn.__version__) < parse_version("1.9"):
    pytest.skip("NOT_FOR_US was written for the tests of scikit-learn 1.9 and later", allow_module_level=True)

IN_PLACE_OF = {"SVC": slimsvm.SlimSVC, "SVR": slimsvm.SlimSVR, "OneClassSVM": slimsvm.SlimOneClassSVM}

PRIVATE = "changes or reads a private attribute of SVC"
PROBABILITY = "probability=True is deprecated in SVC; calibration= takes its place here"
NEGATIVE = "negative weights are refused; SVC leaves such rows out in silence"
ONE_COUNT = "n_iter_ is one count, since some methods train all outputs together"
TAKEN = "is taken here, refused by SVC"
NOT_ROWS = "a kernel function takes rows of numbers here; kernel='precomputed' is for other objects"

#: tests, or cases of a test, that do not apply
NOT_FOR_US = {
    "test_tweak_params": PRIVATE,
    "test_gamma_scale": PRIVATE,
    "test_svc_raises_error_internal_representation": PRIVATE,
    "test_probability": PROBABILITY,
    "test_hasattr_predict_proba": PROBABILITY,
    "test_probability_raises_futurewarning[True-SlimSVC-SVC]": PROBABILITY,
    "test_probability_raises_futurewarning[False-SlimSVC-SVC]": PROBABILITY,
    "test_svc_nusvc_probA_probB_deprecated[SlimSVC]": PROBABILITY,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": NEGATIVE,
    "test_n_iter_libsvm[2-SlimSVC-ndarray]": ONE_COUNT,
    "test_n_iter_libsvm[3-SlimSVC-ndarray]": ONE_COUNT,
    "test_n_iter_libsvm[4-SlimSVC-ndarray]": ONE_COUNT,
    "test_bad_input": f"sparse rows for a model of dense ones: {TAKEN}",
    "test_sparse_precomputed": f"a sparse kernel matrix: {TAKEN}",
    "test_sparse_fit_support_vectors_empty": "dual_coef_ is dense for sparse rows too",
    "test_svr_errors": "a kernel function of the wrong shape is refused by fit; SVR notices in predict",
    "test_libsvm_convergence_warnings": "SMO solves these six rows in one step; test_dropin has rows that need more",
    "test_svc_ovr_tie_breaking[SlimSVC]": "rounding makes SVC's ties; these outputs are 0 here (tests/goals has ties)",
    "test_custom_kernel_not_array_input": NOT_ROWS,
}


class AnyWords:
    """pytest for the tests: errors and warnings are compared by their type, not by their words."""

    def __getattr__(self, name):
        return getattr(pytest, name)

    def raises(self, kind, match=None):  # noqa: ARG002
        return pytest.raises(kind)

    def warns(self, kind, match=None):  # noqa: ARG002
        return pytest.warns(kind)


def with_ours(module):
    """Return a stand-in for sklearn.svm with our classes."""
    stand_in = type(module)(module.__name__)
    vars(stand_in).update(vars(module) | IN_PLACE_OF)
    return stand_in


def load_tests():
    """Return scikit-learn's test module, made with our classes; sklearn.svm itself is left as it was."""
    spec = importlib.util.find_spec("sklearn.svm.tests.test_svm")
    if spec is None:
        pytest.skip("this scikit-learn was installed without its tests", allow_module_level=True)
    tests = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # for the parameters of tests, which are made on import
        for name, ours in IN_PLACE_OF.items():
            patch.setattr(svm, name, ours)
        spec.loader.exec_module(tests)
    tests.svm, tests.pytest = with_ours(svm), AnyWords()
    return tests


def concerns_us(test):
    return re.search(r"svm\.SVC\b|\bSVR\b|\bOneClassSVM\b", inspect.getsource(test)) is not None


TESTS = {name: test for name, test in vars(load_tests()).items() if name.startswith("test_") and concerns_us(test)}
globals().update(TESTS)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def applies(request):
    """Skip what does not apply."""
    name = request.node.name
    reason = NOT_FOR_US.get(name) or NOT_FOR_US.get(name.partition("[")[0])
    if reason:
        pytest.skip(reason)


def test_the_tests_are_there():
    assert len(TESTS) > 30
    assert {name.partition("[")[0] for name in NOT_FOR_US} <= TESTS.keys()
    assert svm.SVC.__name__ == "SVC"
