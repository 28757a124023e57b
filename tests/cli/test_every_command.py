"""What holds for all commands: `--json`, one vocabulary, completion."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from bot.cli import app
from bot.cli.completion import Shell

# They print a log, a script or the messages of a protocol.
WITHOUT_JSON = {"serve", "completion", "mcp"}


def commands(group, path=()):
    """Every command by its words."""
    for name, command in group.commands.items():
        words = (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield words, command


COMMANDS = dict(commands(get_command(app.app)))


def options_of(command):
    return {option for each in command.params for option in each.opts if option.startswith("-")}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_answers_programs(words):
    assert ("--json" in options_of(COMMANDS[words])) is not (words[0] in WITHOUT_JSON)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_and_its_options_are_described(words):
    command = COMMANDS[words]
    assert command.help
    assert [each.name for each in command.params if not each.help and each.name != "help"] == []


def completed(shell, script):
    """What a shell prints that has our program on its path."""
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout


BASH = """
eval "$(headgate completion bash)"
COMP_WORDS=(headgate queue p) COMP_CWORD=2
_headgate_completion headgate
echo "${COMPREPLY[@]}"
COMP_WORDS=(headgate land --pri) COMP_CWORD=2
_headgate_completion headgate
echo "${COMPREPLY[@]}"
"""
BASH_SETTINGS = """
eval "$(headgate completion bash)"
complete_it() {
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _headgate_completion headgate; echo "${COMPREPLY[@]}"
}
COMP_WORDS=(headgate queue update --set merge_m); complete_it
COMP_WORDS=(headgate queue update --set mergeMethod=); complete_it
COMP_WORDS=(headgate simulate --set mergeMethod=SQ); complete_it
COMP_WORDS=(headgate tests settings --set quarantine_f); complete_it
"""
ZSH = """
autoload -U compinit; compinit -D
eval "$(headgate completion zsh)"
echo "${_comps[headgate]}"
_arguments() { echo "$@" }; _describe() { eval 'echo "${'$3'[@]}"' }
words=(headgate queue p) CURRENT=3
_headgate_completion
"""
FISH = 'headgate completion fish | source; complete -C "headgate queue p"'


def test_bash_completes_commands_and_options():
    assert completed("bash", BASH) == "pause\n--priority\n"


def test_settings_are_completed_in_the_spelling_that_was_begun_and_with_their_values():
    assert completed("bash", BASH_SETTINGS).splitlines() == [
        "merge_method=",
        "mergeMethod=MERGE_COMMIT mergeMethod=REBASE mergeMethod=SQUASH",
        "mergeMethod=SQUASH",
        "quarantine_forgives=",
    ]


def test_zsh_completes_commands(needs):
    needs("zsh")
    completer, _, found = completed("zsh", ZSH).partition("\n")
    assert completer == "_headgate_completion"
    assert "pause" in found


def test_fish_completes_commands(needs):
    needs("fish")
    assert completed("fish", FISH).startswith("pause\t")


@pytest.mark.parametrize("shell", Shell)
def test_a_script_is_printed_for_each_shell(capsys, shell):
    assert app.run(["completion", shell.value]) == 0
    assert "_HEADGATE_COMPLETE" in capsys.readouterr().out
