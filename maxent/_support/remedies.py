"""Remedies of several messages.

The command line names its options in their place.
"""

SCALE_FEATURES = "scale the features"
SCALE_COLUMNS = "scale the columns of X, for instance by StandardScaler"
MAKE_BINS = "for instance by sklearn.preprocessing.KBinsDiscretizer(encode='ordinal')"
TAKE_REGRESSOR = "use a regressor such as MEDRegressor"
ONE_AGAINST_REST = "wrap it in sklearn.multiclass.OneVsRestClassifier"
