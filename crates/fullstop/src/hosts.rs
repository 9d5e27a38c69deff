//! Whose run it is: after a restart of an application, its own runs, those of its living
//! siblings, and those that a dead predecessor has left.

use crate::error::Result;
use crate::helpers::{help_long, help_with};
use crate::run::Run;
use crate::runs::Runs;
use crate::status::Status;
use fullstop_cage::linux::{Presence, identify, presence};
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use fullstop_keeper::sweep::{self, Mode, SweepFinding, Swept, sweep_one};
use fullstop_protocol::{Host, Record, Whereabouts};
use fullstop_store::world;

/// Whose a run of an application is, by the kernel's own word: the pid, the start time and the
/// inode of the process that was written down as its host, on this boot, in this pid namespace.
///
/// ```
/// use fullstop::HostedBy;
///
/// let is_orphan = |by: HostedBy| by == HostedBy::Predecessor;
/// assert!(is_orphan(HostedBy::Predecessor));
/// assert!(!is_orphan(HostedBy::Unknown), "what cannot be told is no orphan");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostedBy {
    /// Its host is this process.
    ThisProcess,
    /// Its host is another process, and lives.
    Sibling,
    /// Its host is dead.
    Predecessor,
    /// It belongs to another machine or pid namespace, or what is in the host's place is hidden
    /// from here.
    Unknown,
}

/// An unfinished run of an application.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-app-run-{}", std::process::id()));
/// use fullstop::{HostedBy, Runs, blocking};
///
/// let runs = Runs::at(&dir)?.with_app("my-app")?;
/// let run = blocking::start(runs.command("sleep").arg("60"))?;
/// let found = blocking::wait(runs.of("my-app"))?;
/// assert_eq!(found[0].run.id(), run.id());
/// assert_eq!(found[0].hosted_by, HostedBy::ThisProcess);
/// assert!(blocking::wait(runs.of("another-app"))?.is_empty());
/// # blocking::wait(run.kill())?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppRun {
    /// The run. Adopted, it keeps the name of the application.
    pub run: Run,
    /// How it stands. A run that is not `live` has lost its keeper and its guard, and is for
    /// [`Runs::sweep_of`]; any other can be stopped, or [adopted](Run::adopt) if its host is gone.
    pub status: Status,
    /// The process that it belongs to.
    pub host: Host,
    /// Whose it is.
    pub hosted_by: HostedBy,
}

impl Runs {
    /// The unfinished runs of an application, oldest first, and whose each is. A run whose
    /// record cannot be read has no application, and a restarted run none before it is
    /// [adopted](Run::adopt).
    ///
    /// Nothing is changed by this, and a future that is dropped leaves nothing behind.
    pub async fn of(&self, app: &str) -> Result<Vec<AppRun>> {
        let runs = self.clone().with_app(app)?;
        help_with(runs, Runs::hosted).await
    }

    fn hosted(&self) -> Result<Vec<AppRun>> {
        let own = own_identity();
        let app_run = |id: Id| {
            let record = self.store().record(&id).ok()?;
            let hosted_by = hosted_by(&record, own.as_ref());
            let host = record.host.filter(|host| host.app.as_deref() == self.app())?;
            let status = Status::of(self.store(), &id)?;
            Some(AppRun { run: self.run(id), status, host, hosted_by })
        };
        Ok(self.store().live()?.into_iter().filter_map(app_run).collect())
    }

    /// Ends the runs of an application whose keeper and guard are gone, if their host is dead, or
    /// is this process. Those of others are left alone: they are not even named.
    ///
    /// Named, and left alone, is a lost run of the application whose host lives, or of which that
    /// cannot be told; and one whose record cannot be read: it may be anybody's.
    ///
    /// Dropped before it is done, it goes on to its end.
    pub async fn sweep_of(&self, app: &str) -> Result<Vec<Swept>> {
        let runs = self.clone().with_app(app)?;
        help_long(runs, Runs::sweep_hosted).await
    }

    fn sweep_hosted(&self) -> Result<Vec<Swept>> {
        let own = own_identity();
        let lost = sweep::lost(self.store())?;
        Ok(lost.iter().filter_map(|id| self.sweep_if_hosted(id, own.as_ref())).collect())
    }

    /// Only what the record says of the host is believed here. Whether the run is lost, and which
    /// processes are in it, is for the sweep to find out.
    fn sweep_if_hosted(&self, id: &Id, own: Option<&Identity>) -> Option<Swept> {
        let left = |name: Option<String>, why: String| {
            let found = SweepFinding::LeftAlone { why, elsewhere: None };
            Some(Swept { id: id.clone(), name, found })
        };
        let record = match self.store().record(id) {
            Ok(record) => record,
            // It was removed meanwhile.
            Err(_) if self.store().is_gone(id).unwrap_or(false) => return None,
            Err(error) => return left(None, format!("{error}, so that it may be anybody's")),
        };
        let host = record.host.as_ref().filter(|host| host.app.as_deref() == self.app())?;
        let pid = host.process.pid;
        match hosted_by(&record, own) {
            HostedBy::ThisProcess | HostedBy::Predecessor => sweep_one(self.store(), id, Mode::End),
            HostedBy::Sibling => left(record.name, format!("its host lives (pid {pid})")),
            HostedBy::Unknown => {
                left(record.name, format!("it cannot be told whether its host (pid {pid}) lives"))
            }
        }
    }
}

fn own_identity() -> Option<Identity> {
    identify(rustix::process::getpid().as_raw_pid())
}

/// Whose the run is. Of a run without a host that cannot be told.
fn hosted_by(record: &Record, own: Option<&Identity>) -> HostedBy {
    let Some(host) = &record.host else { return HostedBy::Unknown };
    match world::whereabouts(&record.world) {
        Whereabouts::Here => {}
        // No process outlives its kernel.
        Whereabouts::BeforeReboot => return HostedBy::Predecessor,
        _ => return HostedBy::Unknown,
    }
    // Start times are told in the time of the reader's namespace.
    let is_one_time = record.world.time_namespace == world::here().time_namespace;
    if host.process.inode.is_none() && !is_one_time {
        return HostedBy::Unknown;
    }
    match presence(&host.process) {
        _ if own == Some(&host.process) => HostedBy::ThisProcess,
        Presence::Lives => HostedBy::Sibling,
        Presence::Gone => HostedBy::Predecessor,
        Presence::Unknown => HostedBy::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstop_protocol::World;
    use std::process::{Command, Stdio};

    fn record(host: Identity, world: &World) -> Record {
        let json = serde_json::json!({
            "version": 2, "id": "0r3v8x2k7m4pq", "generation": 1, "command": ["claude"],
            "state": "running", "at": "2027-01-15T08:00:00.000Z", "cage": "cgroup",
            "world": world, "host": {"app": "my-app", "process": host},
            "started_at": "2027-01-15T08:00:00.000Z",
        });
        serde_json::from_value(json).expect("a record")
    }

    #[test]
    fn a_run_is_a_predecessors_only_if_the_kernel_says_that_its_host_is_dead() {
        let own = own_identity().expect("we live");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let pid = i32::try_from(child.id()).expect("a pid");
        let sibling = identify(pid).expect("it lives");
        let here = world::here();
        let by = |host, world: &World| hosted_by(&record(host, world), Some(&own));
        assert_eq!(by(own, here), HostedBy::ThisProcess);
        assert_eq!(by(sibling, here), HostedBy::Sibling);
        let passed_on = Identity {
            start_ticks: sibling.start_ticks + 1,
            inode: sibling.inode.map(|inode| inode + 1),
            ..sibling
        };
        assert_eq!(by(passed_on, here), HostedBy::Predecessor, "its pid is another's now");
        drop(child.stdin.take());
        child.wait().expect("reaped");
        assert_eq!(by(sibling, here), HostedBy::Predecessor);
        let elsewhere = World { pid_namespace: 1, ..here.clone() };
        assert_eq!(by(sibling, &elsewhere), HostedBy::Unknown);
        assert_eq!(by(own, &elsewhere), HostedBy::Unknown);
        let before = World { boot: "another".to_owned(), ..here.clone() };
        assert_eq!(by(sibling, &before), HostedBy::Predecessor);
        let other_time = World { time_namespace: Some(1), ..here.clone() };
        assert_eq!(by(Identity { inode: None, ..sibling }, &other_time), HostedBy::Unknown);
        let unwritten = Record { host: None, ..record(own, here) };
        assert_eq!(hosted_by(&unwritten, Some(&own)), HostedBy::Unknown);
    }
}
