//! Presets: ladders for known agents, found by name or by the command line.
//!
//! Agents and the launchers that start them (`npx`, `uvx`, `env`, …) are data, in `presets.json`;
//! this file only knows how to look. Names are compared whole: `claude-history` is not `claude`.

use std::ffi::OsStr;
use std::path::Path;

use serde::Deserialize;

use crate::ladder::Ladder;

const TEXT: &str = include_str!("presets.json");

/// The ladder of a known agent.
///
/// ```
/// use fullstop_core::preset;
///
/// let preset = preset::for_command(&["npx", "-y", "@openai/codex@latest", "exec"]);
/// assert_eq!(preset.map(|preset| preset.name).as_deref(), Some("codex"));
/// assert!(preset::for_command(&["claude-history"]).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name for `--agent`.
    pub name: String,
    /// What the agent calls itself.
    pub title: String,
    /// How it is stopped.
    pub ladder: Ladder,
    /// Why this ladder, in one line.
    pub why: String,
}

/// The preset of that name, or of another name the agent is known by.
pub fn by_name(name: &str) -> Option<Preset> {
    let data = Data::load();
    let mut agents = data.agents.iter();
    let known = |agent: &&Agent| agent.name == name || agent.aliases.contains(&name);
    agents.find(known)?.preset()
}

/// The names [`by_name`] knows, one for each agent.
pub fn names() -> Vec<String> {
    let data = Data::load();
    data.agents.iter().map(|agent| agent.name.to_owned()).collect()
}

/// The preset of the agent that a command starts, directly or through launchers.
pub fn for_command(argv: &[impl AsRef<OsStr>]) -> Option<Preset> {
    let argv: Vec<&OsStr> = argv.iter().map(AsRef::as_ref).collect();
    // Most commands are no agent. Whatever can match stands in the data as a quoted word, so that
    // a look for it saves reading the data.
    let program = base_name(argv.first()?)?;
    let mentioned = |name: &str| TEXT.contains(&format!("\"{name}\""));
    if !mentioned(program) && !mentioned(without_version(program)) {
        return None;
    }
    let data = Data::load();
    data.program(&argv)?.preset()
}

#[derive(Default, Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    agents: Vec<Agent<'a>>,
    #[serde(borrow)]
    launchers: Vec<Launcher<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent<'a> {
    name: &'a str,
    aliases: Vec<&'a str>,
    title: &'a str,
    /// What its executable is called.
    programs: Vec<&'a str>,
    /// What package registries know it as.
    packages: Vec<&'a str>,
    /// What `python -m` knows it as.
    #[serde(default)]
    modules: Vec<&'a str>,
    ladder: &'a str,
    why: &'a str,
}

/// A program that starts another one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Launcher<'a> {
    programs: Vec<&'a str>,
    /// The words that must follow before it launches anything.
    #[serde(default)]
    subcommand: Vec<&'a str>,
    runs: Runs,
    /// Options whose value is the next word.
    #[serde(default)]
    valued: Vec<&'a str>,
    /// The option that names a module instead of a script.
    module: Option<&'a str>,
    /// Whether its name may carry a version: `python3.12`.
    #[serde(default)]
    versioned: bool,
    /// Whether `NAME=value` words may stand before the program.
    #[serde(default)]
    assignments: bool,
    /// How many words of its own come before the program.
    #[serde(default)]
    skip: usize,
}

/// What the first word after a launcher's own ones is.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Runs {
    /// A package, or a program that one brings along.
    Package,
    /// The path of a script.
    Script,
    /// Another command, which may be a launcher itself.
    Program,
}

impl Agent<'_> {
    fn preset(&self) -> Option<Preset> {
        Some(Preset {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            // The tests read every ladder of the data, so this one is good.
            ladder: self.ladder.parse().ok()?,
            why: self.why.to_owned(),
        })
    }
}

impl Data<'_> {
    /// The tests read the data too, so the fallback stays unused.
    fn load() -> Data<'static> {
        serde_json::from_str(TEXT).unwrap_or_default()
    }
}

impl<'a> Data<'a> {
    fn agent(&self, wanted: impl Fn(&Agent<'a>) -> bool) -> Option<&Agent<'a>> {
        self.agents.iter().find(|agent| wanted(agent))
    }

    /// The agent that a command line starts. Each launcher takes at least its name off the line,
    /// so this comes to an end.
    fn program(&self, argv: &[&OsStr]) -> Option<&Agent<'a>> {
        let (first, rest) = argv.split_first()?;
        let name = base_name(first)?;
        let direct = self.agent(|agent| agent.programs.contains(&name));
        direct.or_else(|| {
            let mut launchers = self.launchers.iter().filter(|launcher| launcher.is_called(name));
            launchers.find_map(|launcher| self.launched(launcher, rest))
        })
    }

    /// The agent that a launcher starts with these arguments.
    fn launched(&self, launcher: &Launcher, args: &[&OsStr]) -> Option<&Agent<'a>> {
        let mut args = args;
        for word in &launcher.subcommand {
            let (first, rest) = args.split_first()?;
            (*first == *word).then_some(())?;
            args = rest;
        }
        if let Some(module) = launcher.module(args) {
            return self.agent(|agent| agent.modules.contains(&module));
        }
        let command = launcher.command(args)?;
        let first = command.first()?;
        match launcher.runs {
            Runs::Program => self.program(command),
            Runs::Package => self.package(first.to_str()?),
            Runs::Script => self.script(Path::new(first)),
        }
    }

    fn package(&self, text: &str) -> Option<&Agent<'a>> {
        let name = package_name(text);
        self.agent(|agent| agent.packages.contains(&name) || agent.programs.contains(&name))
    }

    /// An installed package's script, or a program that is one.
    fn script(&self, path: &Path) -> Option<&Agent<'a>> {
        let parts: Vec<&str> = path.iter().filter_map(OsStr::to_str).collect();
        let name = parts.last()?;
        let inside = parts.iter().rposition(|part| *part == "node_modules");
        let inside = inside.map(|at| &parts[at + 1..]).unwrap_or_default();
        let brings = |package: &str| {
            let mut inside = inside.iter();
            package.split('/').all(|part| inside.next() == Some(&part))
        };
        self.agent(|agent| {
            agent.programs.contains(name) || agent.packages.iter().any(|package| brings(package))
        })
    }
}

impl Launcher<'_> {
    fn is_called(&self, name: &str) -> bool {
        self.programs.contains(&name)
            || (self.versioned && self.programs.contains(&without_version(name)))
    }

    /// The module the arguments name, if they name one before any script.
    fn module<'b>(&self, args: &[&'b OsStr]) -> Option<&'b str> {
        let option = self.module?;
        let at = args.iter().position(|arg| *arg == option)?;
        let before = self.command(&args[..at]).is_none_or(<[_]>::is_empty);
        before.then(|| args.get(at + 1)?.to_str()).flatten()
    }

    /// The arguments without the launcher's own options.
    fn command<'b, 'c>(&self, args: &'c [&'b OsStr]) -> Option<&'c [&'b OsStr]> {
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.to_str()?;
            if text == "--" {
                at += 1;
                break;
            } else if self.valued.contains(&text) {
                at += 2;
            } else if text.starts_with('-') || (self.assignments && text.contains('=')) {
                at += 1;
            } else {
                break;
            }
        }
        let own = at + self.skip;
        args.get(own..)
    }
}

fn base_name(program: &OsStr) -> Option<&str> {
    Path::new(program).file_name()?.to_str()
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// The name in what launchers are given: `@openai/codex@latest`, `aider-chat[browser]==0.86`.
fn package_name(text: &str) -> &str {
    let text = text.strip_prefix("npm:").unwrap_or(text);
    // An @ at the start is part of the name: a scope.
    let version = text.char_indices().skip(1).find(|(_, c)| "@=<>~![".contains(*c));
    version.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests;
