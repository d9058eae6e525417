"""The table of invariances is complete, and no row of it is out of date."""

import importlib

from invariances.cells import applicable, every, few
from invariances.registry import ROWS, Documented, row_of, text_of
from invariances.subjects import KINDS, SUBJECTS
from invariances.transformations import TRANSFORMATIONS

import maxent

PACKAGES = [f"maxent.{name}" for name in maxent._SUBPACKAGES]

# Public things that neither learn from data nor compare distributions, by the reason.
NOTHING_TO_LEARN = {
    "draws and bundled data": (
        "load_breast_cancer_wisconsin load_crabs make_motif_occupancy "
        "make_planted_motifs make_switching_series read_fasta sample_spanning_trees"
    ),
    "margin priors, numbers without data": (
        "CustomMargin ErlangMargin ExponentialMargin FixedMargin GaussianMargin "
        "HingeMargin LaplaceMargin LogisticMargin MarginPrior QuadratureMargin "
        "UniformExponentialMargin margin_from_spec"
    ),
    "results and their statuses": (
        "DualResult MaxMargin Status EMResult Forecast StatePosterior FilteredStates "
        "SwitchingPosterior FilteredRegimes LikelihoodEstimate "
        "NoAdmissibleCandidateError Selection"
    ),
    "base classes and checks of a user's own": (
        "ConjugatePrior ExponentialFamily Model check_block check_feature_map"
    ),
    "forms of models that have rows": (
        "HiddenMarkovEstimator MixtureDensity Mixtures select"
    ),
    "searches, whose splits go by the order of the rows": (
        "MEDClassifierCV MEDRegressorCV"
    ),
    "settings, and counts from counts": "TrustBall states_per_sequence",
    "counts of what an estimator found": (
        "Motif MotifPlaces find_motifs read_motifs write_motifs"
    ),
    "files, headers, layouts": (
        "get_include load save RowBlocks register_onnx_converters to_libsvm to_onnx "
        "show_versions"
    ),
}


def public_names():
    names = set(maxent.__all__) - set(maxent._SUBPACKAGES) - {"__version__"}
    for package in PACKAGES:
        if package != "maxent.displays":  # pictures of what others computed
            names |= set(importlib.import_module(package).__all__)
    return names


def test_every_public_name_has_a_row_or_a_reason():
    covered = {name for subject in SUBJECTS for name in subject.covers}
    listed = [name for names in NOTHING_TO_LEARN.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    assert not covered & set(listed)
    missing = public_names() - covered - set(listed)
    assert not missing, f"add rows to tests/invariances/subjects: {sorted(missing)}"
    gone = (covered | set(listed)) - public_names()
    assert not gone, f"no longer public: {sorted(gone)}"


def test_no_row_is_without_a_cell():
    used = {row_of(*cell) for cell in every()}
    assert [row[:2] for i, row in enumerate(ROWS) if i not in used] == []


def test_what_a_row_cites_is_on_the_page():
    for _, _, outcome in ROWS:
        if isinstance(outcome, Documented):
            assert outcome.says in text_of(outcome.where), outcome


def test_names_are_unique():
    names = [subject.name for subject in SUBJECTS]
    assert len(names) == len(set(names))
    for subject in SUBJECTS:
        names = [transformation.name for transformation in applicable(subject)]
        assert len(names) == len(set(names)), subject.name


def test_every_group_of_transformations_belongs_to_data_of_some_kind():
    groups = {transformation.group for transformation in TRANSFORMATIONS}
    assert set(" ".join(KINDS.values()).split()) <= groups
    assert groups == set().union(*(subject.groups for subject in SUBJECTS))


def test_the_default_run_has_every_subject_and_every_transformation():
    cells = few()
    assert {s.name for s, _ in cells} == {s.name for s in SUBJECTS}
    assert {(t.group, t.name) for _, t in cells} == {
        (t.group, t.name) for _, t in every()
    }
