//! A run gets this program for its host.

use crate::error::{Error, Result};
use crate::orders::await_there;
use crate::run::Run;
use crate::stop::{self, Accepted};
use fullstop_protocol::{HostPolicy, RequestKind};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io;
use std::os::unix::net::UnixStream;

impl Run {
    /// Makes this program the host of a run that has no host, or whose host is gone: it was begun
    /// in the background by a program that has died since, or it was restarted. From then on
    /// `policy` says what becomes of the run when this program ends, or when the returned `Run` and
    /// its clones are dropped. The policy in its spec holds for its first host only.
    ///
    /// The record names this program and its [application](crate::Runs::with_app) at once. An
    /// adoption is refused with the code `has-host` while another host lives, or where it cannot be
    /// told whether that lives, and with `ending` once the run is being stopped. A program that is
    /// the host already may adopt the run again, to give it another policy; the handles that it had
    /// before then no longer keep the run alive.
    ///
    /// If the future is dropped before it is done, the run keeps the host that it had. No run is
    /// stopped because an adoption was not finished.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("fullstop-doc-adopt-{}", std::process::id()));
    /// # let runs = fullstop::Runs::at(&dir)?;
    /// use fullstop::{Command, Error, HostPolicy, Reason, blocking};
    ///
    /// // A run in the background lives on without us. Now it is to end with us.
    /// let run = blocking::start(runs.command("sleep").arg("60"))?;
    /// let ours = blocking::wait(run.adopt(HostPolicy::Stop))?;
    /// drop(ours);
    /// let report = blocking::wait(run.wait())?;
    /// assert!(report.is_proven());
    ///
    /// let late = blocking::wait(run.adopt(HostPolicy::Stop));
    /// assert!(matches!(late, Err(Error::Ended(_))));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn adopt(&self, policy: HostPolicy) -> Result<Run> {
        let app = self.runs().app().map(str::to_owned);
        let adopt = RequestKind::Adopt { app, on_host_exit: policy };
        let run = self.unhosted();
        let reserve = async move {
            let line = match stop::accept(&run, &adopt).await? {
                Accepted::By(line, _) => line,
                Accepted::Over(report) => return Err(Error::Ended(report)),
            };
            let once_more = line.next_request(&run, adopt);
            let line = line.into_std().and_then(|line| Ok((line, once_more?)));
            line.map_err(Error::io("use the line to the keeper"))
        };
        let (line, once_more) = await_there(reserve).await?;
        // From here to the end there is no await: who has the run has said so to the keeper, and
        // who was dropped has not.
        acknowledge(&line, &once_more).map_err(Error::io("tell the keeper that it is heard"))?;
        Ok(self.with_line(line))
    }
}

/// The keeper has read all that was said before, so that there is room for this.
fn acknowledge(line: &UnixStream, text: &[u8]) -> io::Result<()> {
    loop {
        match send(line, text, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) if sent == text.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
