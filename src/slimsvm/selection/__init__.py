"""The choice of a small model: folds, the path of models, budgets and their costs, scores."""
