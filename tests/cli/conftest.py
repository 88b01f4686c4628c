"""Commands, called as from a shell but in this process."""

import pytest

from manifoldry.cli.main import main


@pytest.fixture
def run(capsys):
    def run_command(*arguments, code=0):
        """Standard output and the lines of standard error."""
        assert main([str(each) for each in arguments]) == code, capsys.readouterr()
        out, err = capsys.readouterr()
        return out, err.splitlines()

    return run_command
