//! Another host for a run whose own is gone.
//!
//! An adoption has two parts. The first request reserves the run, and the record names the new
//! host at once. The next request on the same connection, whatever it asks, completes the
//! adoption: only then does the end of this connection, or the death of this host, mean what was
//! asked for. A client that is cut short between the two has not heard the answer, or does not
//! want it any more. The run then keeps the host that it had before, and lives on.

use super::Keeper;
use crate::control::Order;
use crate::lifeline::ToGuard;
use fullstop_cage::linux::{PeerProcess, Presence, presence};
use fullstop_core::identity::Identity;
use fullstop_core::machine::State;
use fullstop_protocol::{EventKind, Host, HostPolicy, Placement, Refusal, RefusalCode};
use std::os::fd::OwnedFd;

/// An adoption that was accepted, and is not complete.
pub(super) struct Adoption {
    /// The host that the run keeps, if nothing comes of it.
    before: Option<Host>,
    on_host_exit: HostPolicy,
    /// Becomes readable when the new host dies.
    pidfd: OwnedFd,
}

impl Keeper<'_> {
    /// Reserves the run for the process at the other end; or gives the present host another
    /// policy, on its own line.
    pub(super) fn adopt(
        &mut self,
        order: &Order,
        app: Option<&str>,
        on_host_exit: HostPolicy,
    ) -> Result<(), Refusal> {
        if let Some(Err(error)) = app.map(Host::check_app) {
            return Err(Refusal::new(RefusalCode::InvalidRequest, error.to_string()));
        }
        if !matches!(self.engine.state, State::Starting { .. } | State::Running { .. }) {
            let message = format!("it is {}", self.engine.notes.state(&self.engine.state).word());
            return Err(Refusal::new(RefusalCode::Ending, message));
        }
        let Some(PeerProcess { identity, pidfd }) = self.control.process(order.from) else {
            let message = "the process that asks cannot be seen from where the keeper is";
            return Err(Refusal::new(RefusalCode::UnseenPeer, message));
        };
        if !order.is_host {
            self.check_host_is_gone(&identity)?;
        }
        let host = Host { app: app.map(str::to_owned), process: identity };
        let before = self.assigned.launch.host.replace(host);
        self.adoption = Some(Adoption { before, on_host_exit, pidfd });
        if order.is_host {
            self.complete_adoption(order.from);
        } else {
            self.control.await_adopter(order.from);
            self.write_host();
        }
        Ok(())
    }

    /// Only a run whose host is proven to be gone can be adopted; or by that host itself, on
    /// another connection.
    fn check_host_is_gone(&mut self, by: &Identity) -> Result<(), Refusal> {
        let refuse = |message: String| Err(Refusal::new(RefusalCode::HasHost, message));
        if self.assigned.launch.placement == Placement::Foreground {
            return refuse("it runs in the place of its caller, and ends with that".to_owned());
        }
        // A fork of a dead adopter may hold its connection open.
        if self.adoption.is_some() && self.host_presence() == Presence::Gone {
            self.abandon_adoption();
        }
        let Some(host) = self.assigned.launch.host.as_ref().map(|host| host.process) else {
            return Ok(());
        };
        let pid = host.pid;
        if self.adoption.is_some() {
            return refuse(format!("it is being adopted by pid {pid}"));
        }
        if host == *by {
            return Ok(());
        }
        match self.host_presence() {
            // Its death is about to end the run, which is no moment to adopt it.
            Presence::Gone if self.outlives_host => Ok(()),
            Presence::Gone => refuse(format!("its host (pid {pid}) has only just died")),
            Presence::Lives => refuse(format!("its host lives (pid {pid})")),
            Presence::Unknown => {
                refuse(format!("it cannot be told whether its host (pid {pid}) lives"))
            }
        }
    }

    /// Whether the host lives, in the pid namespace in which it was written down: that of the
    /// keeper, unless the host's own line denies it.
    fn host_presence(&self) -> Presence {
        let Some(host) = &self.assigned.launch.host else { return Presence::Gone };
        if self.is_host_foreign { Presence::Unknown } else { presence(&host.process) }
    }

    /// An adopter that is the host already, on another line, may let go of that line as soon as
    /// it has asked something more on this one: that is heard first.
    pub(super) fn finish_adoptions(&mut self, orders: &[Order]) {
        for from in orders.iter().map(|order| order.from) {
            if self.control.is_adopter(from) {
                self.complete_adoption(from);
            }
        }
    }

    /// A further request of an adopter completes its adoption, and is heard as the host's; that
    /// of a line that was the host's before is not any more.
    pub(super) fn finish_adoption(&mut self, order: &mut Order) {
        if self.control.is_adopter(order.from) {
            self.complete_adoption(order.from);
        }
        order.is_host = self.control.is_host(order.from);
    }

    fn complete_adoption(&mut self, from: usize) {
        let Some(Adoption { on_host_exit, pidfd, .. }) = self.adoption.take() else { return };
        self.outlives_host = on_host_exit == HostPolicy::Ignore;
        self.hosts.clear();
        self.hosts.extend((!self.outlives_host).then_some(pidfd));
        self.is_host_foreign = false;
        self.control.make_host(from);
        self.tell_guard_host();
        if let (Some(ledger), Some(host)) = (&mut self.ledger, self.assigned.launch.host.clone()) {
            ledger.event(EventKind::Adopted { host, on_host_exit });
            ledger.adopted(self.assigned);
        }
    }

    /// The connection of an adopter has come to its end before the adoption was complete.
    pub(super) fn forget_adopter_that_left(&mut self) {
        if self.control.adopter_has_left() {
            self.abandon_adoption();
        }
    }

    fn abandon_adoption(&mut self) {
        self.control.refuse_adopter();
        if let Some(Adoption { before, .. }) = self.adoption.take() {
            self.assigned.launch.host = before;
            self.write_host();
        }
    }

    /// The record and the guard know the host as the keeper does.
    fn write_host(&mut self) {
        self.tell_guard_host();
        if let Some(ledger) = &mut self.ledger {
            ledger.know_host(self.assigned.launch.host.as_ref());
            ledger.write();
        }
    }

    fn tell_guard_host(&self) {
        if let Some(lifeline) = &self.lifeline {
            lifeline.send(&ToGuard::Hosted(self.assigned.launch.host.clone()), None);
            self.bell.ring();
        }
    }
}
