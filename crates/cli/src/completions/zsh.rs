//! For zsh, by its own `_arguments`.

use super::{GROUPS, RUNS, STDINS, options, words};
use crate::grammar::{Command, FULLSTOP, Kind, Operand, Opt};
use std::fmt::Write;

const TAIL: &str = r#"
# Apart, because a colon would end a spec.
_fullstop_ready() {
    compadd "$@" -S '' - tcp: file:
}

# Loaded from fpath this file is the function; sourced, it defines it.
if [[ $funcstack[1] == _fullstop ]]; then
    _fullstop "$@"
else
    compdef _fullstop fullstop
fi
"#;

pub fn script() -> String {
    let mut script = "#compdef fullstop\n# made by: fullstop completions zsh\n".to_owned();
    for command in FULLSTOP.all() {
        function(&mut script, command);
    }
    lister(&mut script, "_fullstop_runs", "run", RUNS);
    lister(&mut script, "_fullstop_groups", "group", GROUPS);
    let _ = writeln!(
        script,
        "\n_fullstop_stdin() {{\n    compadd \"$@\" - {STDINS}; _files \"$@\"\n}}"
    );
    script.push_str(TAIL);
    script
}

fn function(script: &mut String, command: &Command) {
    let name = name(command);
    let _ = writeln!(script, "\n{name}() {{");
    if command.chapters.is_empty() {
        // -s: short flags may stand together; -S: no options behind `--`.
        script.push_str("    _arguments -s -S");
    } else {
        script.push_str("    local curcontext=$curcontext state line ret=1\n");
        script.push_str("    typeset -A opt_args\n");
        script.push_str("    _arguments -C -s -S");
    }
    for option in options(command) {
        let _ = write!(script, " \\\n        {}", spec(option));
    }
    if command.chapters.is_empty() {
        for operand in command.operands {
            let _ = write!(script, " \\\n        {}", place(operand));
        }
        script.push_str("\n}\n");
    } else {
        script.push_str(" \\\n        '(-): :->command' \\\n        '*:: :->rest' && ret=0\n");
        below(script, command);
        script.push_str("    return ret\n}\n");
    }
}

/// The commands below, and to which function the rest of the line goes.
fn below(script: &mut String, command: &Command) {
    script.push_str("    case $state in\n    command)\n        local -a commands=(\n");
    for below in command.commands() {
        let row = format!("{}:{}", below.name(), below.does.replace(':', "\\:"));
        let _ = writeln!(script, "            {}", quoted(&row));
    }
    script.push_str(
        "        )\n        _describe -t commands command commands && ret=0\n        ;;\n",
    );
    script.push_str("    rest)\n        case $line[1] in\n");
    for below in command.commands() {
        let _ = writeln!(script, "        {}) {} && ret=0 ;;", below.name(), self::name(below));
    }
    script.push_str("        esac\n        ;;\n    esac\n");
}

fn name(command: &Command) -> String {
    format!("_{}", command.joined("_"))
}

/// `'(-q --quiet)'{-q,--quiet}'[say nothing]'`, `'--cwd=[there]:DIR:_files -/'`.
fn spec(option: &Opt) -> String {
    let value = option.value.map(|value| format!(":{}:{}", meant(value.name), action(value.kind)));
    let end = format!("[{}]{}", meant(option.brief), value.unwrap_or_default());
    let equals = if option.value.is_some() { "=" } else { "" };
    let names: Vec<_> = option.names().collect();
    if option.repeats {
        return quoted(&format!("*--{}{equals}{end}", option.long));
    }
    match names.as_slice() {
        [short, long] => {
            let plus = if option.value.is_some() { "+" } else { "" };
            format!("'({short} {long})'{{{short}{plus},{long}{equals}}}{}", quoted(&end))
        }
        _ => quoted(&format!("--{}{equals}{end}", option.long)),
    }
}

fn place(operand: &Operand) -> String {
    let name = operand.name;
    if operand.kind == Kind::Program {
        // As for nice and sudo: a command, then whatever that one takes.
        return "'(-):command:_command_names -e' \\\n        '*::arguments:_normal'".to_owned();
    }
    let star = if operand.repeats() { "*" } else { "" };
    quoted(&format!("{star}:{name}:{}", action(operand.kind)))
}

fn action(kind: Kind) -> String {
    if let Some(words) = words(kind) {
        return format!("({})", words.join(" "));
    }
    match kind {
        Kind::File => "_files",
        Kind::Directory => "_files -/",
        Kind::Variable => "_parameters -g \"*export*\"",
        Kind::Assignment => "_parameters -g \"*export*\" -qS=",
        Kind::Ready => "_fullstop_ready",
        Kind::Stdin => "_fullstop_stdin",
        Kind::Run => "_fullstop_runs",
        Kind::Group => "_fullstop_groups",
        // Nothing to offer, but the name is shown.
        _ => " ",
    }
    .to_owned()
}

fn lister(script: &mut String, name: &str, what: &str, command: &str) {
    let _ = writeln!(
        script,
        "\n{name}() {{\n    local -a found=(${{(f)\"$({command})\"}})\n    \
         local expl\n    _wanted {what}s expl {what} compadd -a found\n}}"
    );
}

/// Brackets and colons mean something in a spec.
fn meant(text: &str) -> String {
    text.replace('\\', "\\\\").replace(':', "\\:").replace('[', "\\[").replace(']', "\\]")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
