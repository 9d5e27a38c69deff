//! For fish: a small walk over the line says where it is, and each completion
//! names the place it belongs to.

use super::{GROUPS, RUNS, STDINS, options, words};
use crate::grammar::{Command, FULLSTOP, Kind, Opt};
use std::fmt::Write;

const HEAD: &str = r#"# fish completion for fullstop, made by: fullstop completions fish

# Prints the path of commands so far, the number of operands behind it, and, where
# another program's command line has begun, that line.
function __fullstop_walk
    set -l path
    set -l operands 0
    set -l skip 0
    set -l dashed 0
    set -l words (commandline -opc)
    for i in (seq 2 (count $words))
        set -l word $words[$i]
        if test $skip = 1
            set skip 0
        else if test $dashed = 0; and test "$word" = --
            set dashed 1
        else if test $dashed = 0; and string match -q -- '-?*' $word
            contains -- $word (__fullstop_valued "$path"); and set skip 1
        else if contains -- $word (__fullstop_commands "$path")
            set -a path $word
        else if __fullstop_program "$path"
            string join -- \n "$path" program $words[$i..-1] (commandline -ct)
            return
        else
            set operands (math $operands + 1)
        end
    end
    string join -- \n "$path" $operands
end

# Whether the line is at this command, and at this operand if one is given.
function __fullstop_at
    set -l walk (__fullstop_walk)
    test "$walk[1]" = "$argv[1]"; and test "$walk[2]" != program
    and begin
        test (count $argv) = 1; or test $walk[2] = $argv[2]
    end
end

function __fullstop_in_program
    test (__fullstop_walk)[2] = program
end

function __fullstop_complete_program
    set -l walk (__fullstop_walk)
    __fish_complete_subcommand --commandline $walk[3..-1]
end
"#;

pub fn script() -> String {
    let mut script = HEAD.to_owned();
    tables(&mut script);
    script.push_str("\ncomplete -c fullstop -f\n");
    script.push_str(
        "complete -c fullstop -n __fullstop_in_program -x -a '(__fullstop_complete_program)'\n",
    );
    for command in FULLSTOP.all() {
        places(&mut script, command);
    }
    script
}

/// What the walk must know of each command.
fn tables(script: &mut String) {
    let mut commands = String::new();
    let mut valued = String::new();
    let mut programs = String::new();
    for command in FULLSTOP.all() {
        let path = format!("'{}'", command.path.join(" "));
        if !command.chapters.is_empty() {
            let names = super::names(command).join(" ");
            let _ =
                writeln!(commands, "        case {path}\n            string split ' ' '{names}'");
        }
        let options = command.options().filter(|option| option.value.is_some());
        let names: Vec<_> = options.flat_map(Opt::names).collect();
        if !names.is_empty() {
            let names = names.join(" ");
            let _ =
                writeln!(valued, "        case {path}\n            string split -- ' ' '{names}'");
        }
        if command.runs_a_program() {
            let _ = write!(programs, " {path}");
        }
    }
    for (name, cases) in [("commands", commands), ("valued", valued)] {
        let _ = writeln!(
            script,
            "\nfunction __fullstop_{name}\n    switch \"$argv[1]\"\n{cases}    end\nend"
        );
    }
    let _ = writeln!(
        script,
        "\nfunction __fullstop_program\n    contains -- \"$argv[1]\"{programs}\nend"
    );
}

fn places(script: &mut String, command: &Command) {
    let path = command.path.join(" ");
    let at = format!("complete -c fullstop -n \"__fullstop_at '{path}'\"");
    script.push('\n');
    for below in command.commands() {
        let _ = writeln!(script, "{at} -a {} -d {}", below.name(), quoted(below.does));
    }
    for option in options(command) {
        let _ = writeln!(script, "{at}{}", spec(option));
    }
    for (place, operand) in command.operands.iter().enumerate() {
        let Some(action) = action(operand.kind) else {
            continue;
        };
        let at = if operand.repeats() && operand.kind != Kind::Page {
            at.clone()
        } else {
            format!("complete -c fullstop -n \"__fullstop_at '{path}' {place}\"")
        };
        let _ = writeln!(script, "{at} {action}");
    }
}

fn spec(option: &Opt) -> String {
    let short = option.short.map(|short| format!(" -s {short}")).unwrap_or_default();
    let value = option.kind().map(|kind| match action(kind) {
        Some(action) => format!(" -r {action}"),
        None => " -x".to_owned(),
    });
    let brief = quoted(option.brief);
    format!("{short} -l {}{} -d {brief}", option.long, value.unwrap_or_default())
}

fn action(kind: Kind) -> Option<String> {
    if let Some(words) = words(kind) {
        return Some(format!("-f -a '{}'", words.join(" ")));
    }
    Some(match kind {
        Kind::File => "-F".to_owned(),
        Kind::Directory => "-f -a '(__fish_complete_directories (commandline -ct))'".to_owned(),
        Kind::Variable => "-f -a '(set -xn)'".to_owned(),
        Kind::Assignment => "-f -a '(set -xn)='".to_owned(),
        Kind::Ready => "-f -a 'tcp: file:'".to_owned(),
        Kind::Stdin => format!("-F -a '{STDINS}'"),
        Kind::Run => format!("-f -a '({RUNS})'"),
        Kind::Group => format!("-f -a '({GROUPS})'"),
        Kind::Program => "-f -a '(__fish_complete_command)'".to_owned(),
        _ => return None,
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
