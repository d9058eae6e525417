"""Alphabets of sequences: from the options, or from the letters of the file."""

from maxent._commands.console import tell
from maxent._commands.outcome import CommandError, listed
from maxent._inputs.letters import codes_beside, counted, in_both_cases

__all__ = ["IN_FIT", "IN_PREDICT", "alphabet_of", "check_letters"]

IN_FIT = "add it to --alphabet, or name it in --unknown if it is an unknown letter"
IN_PREDICT = "drop the sequence, or fit again with it in --alphabet or --unknown"
_ONE_CASE = "such as by awk '!/^>/{$0=toupper($0)}1'"  # headers have the labels


def alphabet_of(X, alphabet, unknown):
    """Letters of the sequences, and those that stand for unknown ones.

    Without `unknown`, N and the other codes of IUPAC are unknown letters of nucleic
    acids, and what of them occurs is told. Without `alphabet` it is the rest.

    Parameters
    ----------
    X : list of str
    alphabet, unknown : str or None
        As the user gives them.

    Returns
    -------
    alphabet, unknown : str
    """
    counts = counted(X)
    if unknown is None:
        letters = counts if alphabet is None else dict.fromkeys(alphabet, 1)
        unknown = "".join(a for a in codes_beside(letters) if a not in (alphabet or ""))
        found = [f"{a} ({counts[a]})" for a in unknown if counts[a]]
        if found:
            tell(
                f"maxent fit: {listed(found)} stand for unknown bases; name them in "
                "--alphabet if they are letters of their own"
            )
    if alphabet is None:
        alphabet = "".join(sorted({*counts} - {*unknown}))
        _warn_of_cases(alphabet)
    return alphabet, unknown


def _warn_of_cases(letters):
    """Lower-case letters in files of genomes mark repeats, not other symbols."""
    twice = in_both_cases(letters)
    if twice:
        tell(
            f"maxent fit: warning: {', '.join(twice)} occur in lower case too, which "
            f"counts as another letter; write the letters in one case, {_ONE_CASE}, or "
            "name both by --alphabet"
        )


def check_letters(path, X, places, alphabet, missing, remedy):
    """Refuse letters that a model does not know; their place is named."""
    known = {*(alphabet or ""), *missing}
    for text, place in zip(X, places):
        unknown = {*text} - known
        if alphabet is not None and unknown:
            letter = min(unknown, key=text.index)
            if letter.swapcase() in known:
                remedy = f"write the letters in one case, {_ONE_CASE}"
            raise CommandError(
                f"{path}, {place} has the letter {letter!r} at place "
                f"{text.index(letter) + 1}, which is not in the alphabet {alphabet!r}; "
                f"{remedy}"
            )
