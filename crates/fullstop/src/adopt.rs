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
    /// Ties a run to this program whose own host is gone, or that has none: one that was begun
    /// in the background by a program that has died since, or one that was restarted. From then
    /// on the end of this program, or of the run that is returned and of its clones, means for it
    /// what `policy` says. What its spec says of that holds for its first host.
    ///
    /// The record names this program and its [application](crate::Runs::with_app) at once. It is
    /// refused with the code `has-host` while another host lives, or where it cannot be told
    /// whether it does, and with `ending` once the run is being stopped. The program that is
    /// the host already may adopt it again, to give it another policy; what it held of the run
    /// before means nothing any more.
    ///
    /// Dropped before it is done, this leaves the run to whom it belonged before. It is never
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
