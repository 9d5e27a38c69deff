//! Zsh completes only at a terminal, so that one is made with its own zpty.

use crate::kit::{Scratch, calls, lines, with};
use fullstop_cli::args::Shell;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        with("zsh", "has_no_mistake", has_no_mistake),
        with("zsh", "offers_what_fits", offers_what_fits),
        with("zsh", "completes_the_command_of_run", completes_the_command_of_run),
    ]
}

/// What the inner shell reads. `compadd` is where every offer passes: it is asked
/// what would match, and that goes to a file. Tab completes, then says so.
const INNER: &str = r#"
autoload -Uz compinit && compinit -D -u
source ./script
_toy() { _arguments '--only-of-toy[x]' }
compdef _toy toy
zstyle ':completion:*' use-cache no
compadd() {
    # Odd names, for the arrays of whoever called must stay in sight.
    local -a __seen
    builtin compadd -O __seen "$@"
    local __offer
    for __offer in $__seen; do print -r -- "$BUFFER"$'\t'"$__offer"; done >>./offers
    builtin compadd "$@"
}
zle -C offer-all list-choices _main_complete
look() { zle offer-all; BUFFER=; print -r -- DO""NE }
zle -N look
bindkey '^I' look
print -r -- REA""DY
"#;

const OUTER: &str = r"
zmodload zsh/zpty
zpty inner 'zsh -f -i'
zpty -w inner 'PS1= PROMPT2=; unsetopt zle_bracketed_paste 2>/dev/null; source ./inner'
zpty -r -m inner seen '*READY*'
complete_line() {
    zpty -w -n inner $1$'\t'
    zpty -r -m inner seen '*DONE*'
}
";

fn zsh(lines: &[&str]) -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.script(Shell::Zsh);
    scratch.file("inner", INNER);
    scratch.file("offers", "");
    let calls = calls(lines);
    scratch.file("test", &format!("{OUTER}{calls}zpty -d inner\n"));
    scratch.run("zsh", &["-f", "./test"]);
    let printed = std::fs::read_to_string(scratch.path().join("offers")).unwrap();
    (scratch, printed)
}

fn has_no_mistake() {
    let scratch = Scratch::new();
    scratch.script(Shell::Zsh);
    scratch.run("zsh", &["-f", "-n", "./script"]);
}

fn offers_what_fits() {
    let (scratch, printed) = zsh(&lines());
    scratch.check_all(&printed);
}

fn completes_the_command_of_run() {
    let lines = ["fullstop run -q -- toy --on", "fullstop run --cage tree toy --on"];
    let (_scratch, printed) = zsh(&lines);
    for line in lines {
        let offer = format!("{line}\t--only-of-toy");
        assert!(printed.lines().any(|row| row == offer), "{printed}");
    }
}
