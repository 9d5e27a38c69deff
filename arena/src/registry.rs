//! The scenarios of a test file, by name.

use std::path::Path;
use std::time::Duration;

use crate::{Outcome, World, own_cgroup, seconds};

type Body = Box<dyn Fn(&mut World) -> Outcome + Send + Sync>;

/// A scenario may take this long before its world is ended from within.
const LIMIT: Duration = seconds(60);

/// What the machine must offer for a scenario. What is missing makes the
/// scenario *ignored*, with the reason, never silently passed. Being root with
/// the right to make namespaces is always needed.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    /// A cgroup v2 below which we can make our own.
    Cgroup,
    /// A program in the path.
    Program(&'static str),
    /// Anything else: `Err` says why it cannot be done here.
    Check(fn() -> Result<(), String>),
}

/// One named scenario.
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) needs: Vec<Need>,
    pub(crate) limit: Duration,
    pub(crate) heavy: bool,
    pub(crate) crowd: bool,
    pub(crate) body: Body,
}

impl Scenario {
    /// Gives a scenario another time limit than a minute.
    pub fn limit(&mut self, limit: Duration) -> &mut Self {
        self.limit = limit;
        self
    }

    /// A heavy scenario has the machine to itself, as long as it is busy: two
    /// fork storms would measure each other.
    pub fn heavy(&mut self) -> &mut Self {
        self.heavy = true;
        self
    }

    /// A scenario about a crowd of our own: that its crowd keeps others from
    /// running is no excuse. Its verdicts are void only by the heartbeat at
    /// real-time priority, which no crowd can delay.
    pub fn crowd(&mut self) -> &mut Self {
        self.crowd = true;
        self
    }
}

#[derive(Default)]
pub struct Registry {
    scenarios: Vec<Scenario>,
}

impl Registry {
    /// Registers a scenario. The same names must be registered whenever the
    /// executable starts: a world is entered by name.
    pub fn scenario(
        &mut self,
        name: impl Into<String>,
        needs: &[Need],
        body: impl Fn(&mut World) -> Outcome + Send + Sync + 'static,
    ) -> &mut Scenario {
        let name = name.into();
        assert!(self.find(&name).is_none(), "two scenarios are called {name}");
        self.scenarios.push(Scenario {
            name,
            needs: needs.to_vec(),
            limit: LIMIT,
            heavy: false,
            crowd: false,
            body: Box::new(body),
        });
        self.scenarios.last_mut().expect("one was just pushed")
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }

    pub(crate) fn into_scenarios(self) -> Vec<Scenario> {
        self.scenarios
    }
}

impl Need {
    pub(crate) fn check(self) -> Result<(), String> {
        match self {
            Self::Cgroup => own_cgroup().map_err(|failure| failure.text).and_then(|cgroup| {
                let file = cgroup.path().join("cgroup.procs");
                rustix::fs::access(&file, rustix::fs::Access::WRITE_OK)
                    .map_err(|error| format!("{} is not ours to write: {error}", file.display()))
            }),
            Self::Program(name) => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let found =
                    std::env::split_paths(&path).any(|dir| Path::new(&dir).join(name).is_file());
                if found { Ok(()) } else { Err(format!("{name} is not installed")) }
            }
            Self::Check(check) => check(),
        }
    }
}
