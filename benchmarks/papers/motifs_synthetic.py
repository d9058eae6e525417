"""Synthetic motifs: which order suits which kind of evidence.

Labels from the total occupancy of all places, as in binding experiments, and labels
from one planted site against decoys; a motif of its own in every draw. The protocol is
that of `motifs_pbm`: the same methods, starts and choices, with as many draws in the
place of the splits.
"""

import numpy as np
from motifs_pbm import parser_of, run


def main():
    """Run both generators draw by draw."""
    from maxent.datasets import make_motif_occupancy, make_planted_motifs

    options = parser_of(__doc__).parse_args()
    makers = {"occupancy": make_motif_occupancy, "planted": make_planted_motifs}
    ends = np.cumsum([options.train, options.train // 4])

    def data_of(name, draw):
        n = int(ends[-1]) + options.test
        rng = np.random.default_rng([options.seed, draw, list(makers).index(name)])
        X, y, *_ = makers[name](n, width=options.width, random_state=rng)
        codes = np.searchsorted(list("ACGT"), np.array([list(x) for x in X]))
        return codes, y, np.split(np.arange(n), ends)

    run(data_of, list(makers), options, "motifs_synthetic")


if __name__ == "__main__":
    main()
