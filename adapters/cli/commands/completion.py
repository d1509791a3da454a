"""`kerf completion`: the script by which a shell completes kerf's command lines."""

from __future__ import annotations

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script by which a shell completes commands, flags, and names out of a record.

    The script asks kerf for names when you press the tab key: kerf reads the record
    that stands on the line, and does nothing else. A record in a database is not
    asked.

    For example:

        source <(kerf completion bash)
        source <(kerf completion zsh)
        kerf completion zsh > "${fpath[1]}/_kerf"
        kerf completion fish > ~/.config/fish/completions/kerf.fish
    """
    from kerf.adapters.cli.main import parser
    from kerf.adapters.cli.render.lines import print_text

    print_text(parser().generate_completion(prog_name="kerf", shell=shell) + (_CALLED_BY_ZSH if shell == "zsh" else ""))


_CALLED_BY_ZSH = """
if [[ $funcstack[1] == _kerf ]]; then
  _cyclopts_kerf "$@"
elif (( $+functions[compdef] )); then
  compdef _cyclopts_kerf kerf
fi
"""
"""The script only defines a function. zsh loads it from `fpath` as the function `_kerf`, and expects the answer; where
it is sourced, zsh has to be told of it."""
