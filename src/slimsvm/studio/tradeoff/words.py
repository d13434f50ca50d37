"""What each method does, in a few words for those who do not know its name."""

from __future__ import annotations

from .methods import FULL

REDUCERS_IN_WORDS = {
    "slim": "moves support vectors to where they help most (slimsvm's own method)",
    "slant": "adds the training row that falls short of its margin by most",
    "slant-aggressive": "slant, which adds a row only when the present ones are fitted",
    "lars": "chooses support vectors of the full model by least-angle regression",
    "cvm": "lars, whose support vectors then move to follow the full model's outputs",
    "reduced-set": "makes support vectors one by one that bring it nearest to the full model",
    "osuna-girosi": "fits the full model's outputs by support vector regression",
    "zhan-shen": "osuna-girosi after support vectors in sharp bends of the boundary are left out",
    "rsvm": "takes random training rows and fits their coefficients",
    "spsvm": "chooses training rows one by one, each the most helpful of several",
    "cpsp": "makes support vectors one by one by cutting planes",
    "csvm": "merges the nearest support vectors of a class",
    "slmc": "trains an SVM and the places of its support vectors together",
    "prune": "keeps the support vectors with the largest coefficients; a baseline",
    "nystroem": "takes k-means centres and fits a linear SVM to their kernel values, as scikit-learn's Nystroem does",
}
TRAINERS_IN_WORDS = {
    "smo": "the exact SVM",
    "sbp": "the stochastic batch perceptron",
    "pegasos": "stochastic gradient descent",
    "sdca": "stochastic dual coordinate ascent",
    "perceptron": "the averaged perceptron",
    "ramp": "the SVM that gives up rows far on the wrong side",
    "lp": "the SVM with the 1-norm of the coefficients",
    "any-norm": "the SVM with another norm of the slack",
    "budget-l1": "the SVM that counts the sum of the largest slacks only",
    "budget-l2": "the SVM that counts the squares of the largest slacks only",
    "forgetron": "a perceptron that forgets its oldest support vector",
    "rbp": "a perceptron that forgets a random support vector",
    "bsgd": "stochastic gradient descent that merges support vectors beyond its budget",
}


def in_words(method: str) -> str:
    """Return what a method does; nothing for a name with settings of the user's own."""
    if method == FULL:
        return f"{TRAINERS_IN_WORDS['smo']}, with all its support vectors"
    trainer, _, reducer = method.rpartition("+")
    if not trainer:
        return REDUCERS_IN_WORDS.get(method) or TRAINERS_IN_WORDS.get(method, "")
    first = "no full model" if trainer == "none" else TRAINERS_IN_WORDS.get(trainer)
    return f"{first}; then {REDUCERS_IN_WORDS[reducer]}" if first and reducer in REDUCERS_IN_WORDS else ""
