//! The command line: from words to a [`Call`].

mod bytes;
mod call;
mod logs;
mod run;
mod send;
mod streams;
mod words;

pub use call::{
    Agent, AttachOptions, Call, EnvChange, EventsOptions, Form, GroupCall, LogForm, LogsOptions,
    Man, PruneOptions, PsOptions, Ready, RunOptions, SendOptions, Shell, StartOptions, StopOptions,
    WaitOptions, WaitReady, Which, WindowSize,
};

use crate::grammar::{Command, FULLSTOP, Opt};
use fullstop::Labels;
use lexopt::Parser;
use std::ffi::{OsStr, OsString};
use words::{Early, Read, Word, Words, word, wrong};

/// One line about what is wrong with the call.
#[derive(Debug)]
pub struct UsageError(pub String);

pub fn parse() -> Result<Call, UsageError> {
    parse_from(Parser::from_env())
}

pub fn parse_from(mut parser: Parser) -> Result<Call, UsageError> {
    read(&mut parser).or_else(|early| match early {
        Early::Help(command) => Ok(Call::Help(command)),
        Early::Wrong(error) => Err(error),
    })
}

/// Goes down to the command that is named, and lets it read the rest.
fn read(parser: &mut Parser) -> Read<Call> {
    let mut command = &FULLSTOP;
    while !command.chapters.is_empty() {
        command = match word(parser, command)? {
            Some(Word::Operand(name)) => match command.below(&name) {
                Some(below) => below,
                None => return no_such(command, &name),
            },
            Some(Word::Option(_version)) => return Ok(Call::Version),
            None => {
                return wrong(format!("nothing to do (see {} --help)", command.title()));
            }
        }
    }
    let words = Words::new(parser, command);
    match command.path {
        ["run"] => run::run(words),
        _ => read_other(command, words),
    }
}

/// Every command but `run`, out of its way: code that is not near costs no page
/// fault.
#[cold]
fn read_other(command: &'static Command, words: Words<'_>) -> Read<Call> {
    match command.path {
        ["start"] => run::start(words),
        ["restart"] => restart(words),
        ["ps"] => ps(words),
        ["tree"] => single_json(words, |id, json| Call::Tree { id, json }),
        ["show"] => single_json(words, |id, json| Call::Show { id, json }),
        ["attach"] => attach(words),
        ["logs"] => logs::logs(words),
        ["events"] => events(words),
        ["wait"] => wait(words),
        ["stop"] => Ok(Call::Stop(stop(words)?)),
        ["kill"] => Ok(Call::Kill(stop(words)?)),
        ["signal"] => signal(words),
        ["send"] => send::send(words),
        ["close-stdin"] => single_json(words, |id, json| Call::CloseStdin { id, json }),
        ["group", "ls"] => group_ls(words),
        ["group", "stop"] => {
            single_json(words, |name, json| Call::Group(GroupCall::Stop { name, json }))
        }
        ["group", "close"] => {
            single_json(words, |name, json| Call::Group(GroupCall::Close { name, json }))
        }
        ["group", "open"] => {
            single_json(words, |name, json| Call::Group(GroupCall::Open { name, json }))
        }
        ["rm"] => rm(words),
        ["prune"] => prune(words),
        ["sweep"] => sweep(words),
        ["doctor"] => single_json(words, |_, json| Call::Doctor { json }),
        ["demo"] => only_operands(words).map(|_| Call::Demo),
        ["completions"] => completions(words),
        ["man"] => man(words),
        ["help"] => Ok(Call::Help(page(&only_operands(words)?.operands())?)),
        _ => no_such(&FULLSTOP, command.name().as_ref()),
    }
}

#[cold]
fn no_such<T>(above: &Command, name: &OsStr) -> Read<T> {
    let name = name.to_string_lossy();
    if above.path.is_empty() {
        return wrong(format!("there is no command {name:?}; to run it: fullstop run -- {name}"));
    }
    let known: Vec<_> = above.commands().map(Command::name).collect();
    let above = above.name();
    wrong(format!("{above}: there is no command {name:?}; there are {}", known.join(", ")))
}

/// For commands without options.
fn only_operands(mut words: Words<'_>) -> Read<Words<'_>> {
    match words.next()? {
        Some(option) => words.unknown(option),
        None => Ok(words),
    }
}

/// For commands about one thing, or about none, that can be told as JSON.
fn single_json(mut words: Words<'_>, call: impl Fn(String, bool) -> Call) -> Read<Call> {
    let json = only_json(&mut words)?;
    Ok(call(words.single()?, json))
}

fn restart(mut words: Words<'_>) -> Read<Call> {
    let (labels, json) = labels_json(&mut words)?;
    let wrong = words.nothing_chosen();
    Ok(Call::Restart { which: ids_or_labels(words.texts()?, labels, wrong)?, json })
}

/// The labels that were given, and whether `--json` was, where there is no other option.
fn labels_json(words: &mut Words<'_>) -> Read<(Labels, bool)> {
    let (mut labels, mut json) = (Labels::default(), false);
    while let Some(option) = words.next()? {
        match option.long {
            "label" => words.label(option, &mut labels)?,
            "json" => json = true,
            _ => return words.unknown(option),
        }
    }
    Ok((labels, json))
}

/// The runs that are meant, by their ids or by their labels.
fn ids_or_labels(ids: Vec<String>, labels: Labels, wrong: Early) -> Read<Which> {
    match (ids.is_empty(), labels.is_empty()) {
        (false, true) => Ok(Which::Ids(ids)),
        (true, false) => Ok(Which::Labels(labels)),
        _ => Err(wrong),
    }
}

/// Whether `--json` was given, where there is no other option.
fn only_json(words: &mut Words<'_>) -> Read<bool> {
    let mut json = false;
    while let Some(option) = words.next()? {
        match option.long {
            "json" => json = true,
            _ => return words.unknown(option),
        }
    }
    Ok(json)
}

fn ps(mut words: Words<'_>) -> Read<Call> {
    let mut options = PsOptions::default();
    while let Some(option) = words.next()? {
        match option.long {
            "all" => options.all = true,
            "group" => options.group = Some(words.text(option)?),
            "label" => words.label(option, &mut options.labels)?,
            "watch" => options.watch = true,
            _ => options.form = form(&words, option, options.form)?,
        }
    }
    Ok(Call::Ps(options))
}

fn group_ls(mut words: Words<'_>) -> Read<Call> {
    let mut chosen = Form::default();
    while let Some(option) = words.next()? {
        chosen = form(&words, option, chosen)?;
    }
    Ok(Call::Group(GroupCall::Ls { form: chosen }))
}

fn form(words: &Words<'_>, option: &Opt, before: Form) -> Read<Form> {
    let form = match option.long {
        "quiet" => Form::Names,
        "json" => Form::Json,
        _ => return words.unknown(option),
    };
    if before != Form::Table && before != form {
        return words.fail("--quiet and --json: only one of them");
    }
    Ok(form)
}

fn attach(mut words: Words<'_>) -> Read<Call> {
    let mut options = AttachOptions::default();
    while let Some(option) = words.next()? {
        match option.long {
            "view" => options.view = true,
            "detach-keys" => options.keys = words.keys(option)?,
            _ => return words.unknown(option),
        }
    }
    options.id = words.single()?;
    Ok(Call::Attach(options))
}

fn events(mut words: Words<'_>) -> Read<Call> {
    let mut options = EventsOptions::default();
    while let Some(option) = words.next()? {
        match option.long {
            "follow" => options.follow = true,
            "json" => options.json = true,
            _ => return words.unknown(option),
        }
    }
    options.ids = words.texts()?;
    Ok(Call::Events(options))
}

fn wait(mut words: Words<'_>) -> Read<Call> {
    let (mut options, mut labels) = (WaitOptions::default(), Labels::default());
    while let Some(option) = words.next()? {
        match option.long {
            "label" => words.label(option, &mut labels)?,
            "timeout" => options.timeout = Some(words.time(option)?),
            "json" => options.json = true,
            _ => return words.unknown(option),
        }
    }
    let wrong = words.nothing_chosen();
    options.which = ids_or_labels(words.texts()?, labels, wrong)?;
    Ok(Call::Wait(options))
}

fn stop(mut words: Words<'_>) -> Read<StopOptions> {
    let (mut all, mut group, mut labels) = (false, None, Labels::default());
    let (mut within, mut wait, mut json, mut quiet) = (None, true, false, false);
    while let Some(option) = words.next()? {
        match option.long {
            "within" => within = Some(words.time(option)?),
            "all" => all = true,
            "group" => group = Some(words.text(option)?),
            "label" => words.label(option, &mut labels)?,
            "no-wait" => wait = false,
            "json" => json = true,
            "quiet" => quiet = true,
            _ => return words.unknown(option),
        }
    }
    // Nobody should find out by accident what "all of these" means.
    let which = match (all, group, !labels.is_empty(), words.has_operands()) {
        (true, None, false, false) => Which::All,
        (false, Some(group), false, false) => Which::Group(group),
        (false, None, true, false) => Which::Labels(labels),
        (false, None, false, true) => Which::Ids(words.texts()?),
        (false, None, false, false) => {
            return words.fail("which run? give its id, --group, --label or --all");
        }
        _ => return words.fail("ids, --group, --label and --all: only one of them"),
    };
    Ok(StopOptions { which, within, wait, json, quiet })
}

fn signal(mut words: Words<'_>) -> Read<Call> {
    let (labels, json) = labels_json(&mut words)?;
    let nothing_chosen = words.nothing_chosen();
    let mut operands = words.texts()?.into_iter();
    match operands.next().unwrap_or_default().parse() {
        Ok(signal) => {
            let which = ids_or_labels(operands.collect(), labels, nothing_chosen)?;
            Ok(Call::Signal { signal, which, json })
        }
        Err(error) => wrong(format!("{error} (see fullstop signal --help)")),
    }
}

fn rm(mut words: Words<'_>) -> Read<Call> {
    let (mut forget, mut json) = (false, false);
    while let Some(option) = words.next()? {
        match option.long {
            "forget" => forget = true,
            "json" => json = true,
            _ => return words.unknown(option),
        }
    }
    Ok(Call::Rm { ids: words.texts()?, forget, json })
}

fn prune(mut words: Words<'_>) -> Read<Call> {
    let mut options = PruneOptions::default();
    while let Some(option) = words.next()? {
        match option.long {
            "older" => options.older = Some(words.time(option)?),
            "keep" => options.keep = Some(words.number(option)?),
            "forget" => options.forget = true,
            "dry-run" => options.dry_run = true,
            "json" => options.json = true,
            _ => return words.unknown(option),
        }
    }
    // The one is about runs that have ended, the other about runs that have not.
    if options.forget && (options.older.is_some() || options.keep.is_some()) {
        return words.fail("--forget removes no run that has ended: without --older and --keep");
    }
    Ok(Call::Prune(options))
}

fn sweep(mut words: Words<'_>) -> Read<Call> {
    let (mut dry_run, mut json) = (false, false);
    while let Some(option) = words.next()? {
        match option.long {
            "dry-run" => dry_run = true,
            "json" => json = true,
            _ => return words.unknown(option),
        }
    }
    Ok(Call::Sweep { dry_run, json })
}

fn completions(words: Words<'_>) -> Read<Call> {
    Ok(Call::Completions(match only_operands(words)?.single_word()? {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    }))
}

fn man(mut words: Words<'_>) -> Read<Call> {
    let mut dir = None;
    while let Some(option) = words.next()? {
        match option.long {
            "dir" => dir = Some(words.value()?),
            _ => return words.unknown(option),
        }
    }
    Ok(Call::Man(match dir {
        Some(_) if words.has_operands() => {
            return words.fail("--dir writes all pages; give it or a command");
        }
        Some(dir) => Man::Dir(dir),
        None => Man::Page(page(&words.operands())?),
    }))
}

/// The command that these words name.
fn page(path: &[OsString]) -> Read<&'static Command> {
    let mut command = &FULLSTOP;
    for name in path {
        command = match command.below(name) {
            Some(below) => below,
            None => {
                let name = name.to_string_lossy();
                return wrong(format!("there is no command {name:?} (see fullstop --help)"));
            }
        }
    }
    Ok(command)
}
