//! For bash, with nothing but bash: where bash-completion is loaded, it is asked
//! to complete the command behind `run`; elsewhere that gets programs and files.

use super::{GROUPS, RUNS, STDINS, names, options, words};
use crate::grammar::{Command, FULLSTOP, Kind, Opt};
use std::fmt::Write;

const HEAD: &str = r#"# bash completion for fullstop, made by: fullstop completions bash

_fullstop() {
    local cur=${COMP_WORDS[COMP_CWORD]} path= pending= dashed= program= operands=0
    local commands= options= valued= i word
    COMPREPLY=()
    _fullstop_command
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -z $dashed && $word == -- ]]; then
            dashed=1
        elif [[ -z $dashed && $word == -?* ]]; then
            if [[ " $valued " == *" $word "* ]]; then
                # Its value is next. Bash makes words of their own of `=` and `:`.
                [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
                ((i + 1 >= COMP_CWORD)) && pending=$word
                ((i++))
                while [[ ${COMP_WORDS[i + 1]} == [=:]* ]] && ((i < COMP_CWORD)); do
                    ((i + 2 >= COMP_CWORD)) && return
                    ((i += 2))
                done
            fi
        elif [[ " $commands " == *" $word "* ]]; then
            path=${path:+$path }$word
            _fullstop_command
        elif [[ $program ]]; then
            # The rest is a command line of its own.
            _fullstop_program "$i"
            return
        else
            ((operands++))
        fi
    done
    if [[ $pending ]]; then
        [[ $cur == = ]] && cur=
        _fullstop_value "$path $pending"
    elif [[ -z $dashed && $cur == -* ]]; then
        _fullstop_words "$options"
    elif [[ $commands ]]; then
        _fullstop_words "$commands"
    else
        _fullstop_operand
    fi
}

_fullstop_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Names that others chose are read as they are: compgen would expand them.
_fullstop_lines() {
    local line
    while IFS= read -r line; do
        [[ $line == "$cur"* ]] || continue
        printf -v line %q "$line"
        COMPREPLY+=("$line")
    done
}

# Completes the command line that begins at this word as one of its own.
_fullstop_program() {
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif (($1 < COMP_CWORD)) || [[ $cur == */* ]]; then
        compopt -o default
    else
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    fi
}
"#;

pub fn script() -> String {
    let mut script = HEAD.to_owned();
    commands(&mut script);
    values(&mut script);
    operands(&mut script);
    script.push_str("\ncomplete -F _fullstop fullstop\n");
    script
}

/// What there is after each command.
fn commands(script: &mut String) {
    script.push_str("\n_fullstop_command() {\n    program= commands= valued=\n    case $path in\n");
    for command in FULLSTOP.all() {
        let _ = writeln!(script, "    {})", pattern(command));
        if !command.chapters.is_empty() {
            let _ = writeln!(script, "        commands='{}'", names(command).join(" "));
        }
        let all: Vec<_> = options(command).flat_map(Opt::names).collect();
        let _ = writeln!(script, "        options='{}'", all.join(" "));
        let valued = options(command).filter(|option| option.value.is_some());
        let valued: Vec<_> = valued.flat_map(Opt::names).collect();
        if !valued.is_empty() {
            let _ = writeln!(script, "        valued='{}'", valued.join(" "));
        }
        if command.runs_a_program() {
            script.push_str("        program=1\n");
        }
        script.push_str("        ;;\n");
    }
    script.push_str("    esac\n}\n");
}

/// What each option's value can be.
fn values(script: &mut String) {
    script.push_str("\n_fullstop_value() {\n    case $1 in\n");
    for command in FULLSTOP.all() {
        for option in command.options() {
            let Some(action) = option.kind().and_then(action) else {
                continue;
            };
            let patterns =
                option.names().map(|name| format!("'{} {name}'", command.path.join(" ")));
            let patterns = patterns.collect::<Vec<_>>().join(" | ");
            let _ = writeln!(script, "    {patterns}) {action} ;;");
        }
    }
    script.push_str("    esac\n}\n");
}

/// What each operand can be, by its place; the last may come again.
fn operands(script: &mut String) {
    script.push_str("\n_fullstop_operand() {\n    case \"$path $operands\" in\n");
    for command in FULLSTOP.all() {
        for (place, operand) in command.operands.iter().enumerate() {
            let Some(action) = action(operand.kind) else {
                continue;
            };
            let path = command.path.join(" ");
            let place = if operand.kind == Kind::Page || !operand.repeats() {
                format!("'{path} {place}'")
            } else {
                format!("'{path} '*")
            };
            let _ = writeln!(script, "    {place}) {action} ;;");
        }
    }
    script.push_str("    esac\n}\n");
}

fn pattern(command: &Command) -> String {
    format!("'{}'", command.path.join(" "))
}

fn action(kind: Kind) -> Option<String> {
    if let Some(words) = words(kind) {
        return Some(format!("_fullstop_words '{}'", words.join(" ")));
    }
    let from = |what: &str| format!("mapfile -t COMPREPLY < <(compgen {what} -- \"$cur\")");
    match kind {
        // Where nothing is offered, readline does it, and knows how to quote.
        Kind::File => Some("compopt -o default".to_owned()),
        Kind::Directory => Some("compopt -o dirnames".to_owned()),
        Kind::Variable => Some(from("-e")),
        Kind::Assignment => Some(format!("compopt -o nospace; {}", from("-S = -e"))),
        Kind::Ready => Some("compopt -o nospace; _fullstop_words 'tcp: file:'".to_owned()),
        Kind::Stdin => Some(format!("compopt -o default; _fullstop_words '{STDINS}'")),
        Kind::Run => Some(format!("_fullstop_lines < <({RUNS})")),
        Kind::Group => Some(format!("_fullstop_lines < <({GROUPS})")),
        Kind::Program => Some("_fullstop_program \"$COMP_CWORD\"".to_owned()),
        _ => None,
    }
}
