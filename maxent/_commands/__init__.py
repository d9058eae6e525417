"""Work behind the commands of ``maxent.cli``."""
