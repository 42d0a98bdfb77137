"""A plugin of pytest: scikit-learn's tests of ``BernoulliRBM`` meet ours in its place."""

import sklearn.neural_network
from harmonium.sklearn import BernoulliRBM

sklearn.neural_network.BernoulliRBM = BernoulliRBM
