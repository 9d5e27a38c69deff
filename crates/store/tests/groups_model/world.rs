//! The groups, the runs, and everybody who acts on them.

use crate::cast::{Closer, Errand, Groups, Keeper, Left, Plan, Run, Seen};
use crate::orders::{Close, End, Join, Open, Variant, asking, closing, ending, joining, opening};
use crate::tree::{Place, Tree};

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happens {
    /// Its keeper goes on.
    Keeper(usize),
    /// Its command ends by itself.
    Exits(usize),
    /// Keeper and guard are killed at once.
    Crashes(usize),
    Restarts(usize),
    Closer,
    CloserCrashes,
    /// Somebody, perhaps the closer, takes over a lost run.
    SweepBegins(usize),
    Sweeper,
    SweeperCrashes,
    PruneBegins(Place),
    Pruner,
    OpenBegins,
    Opener(usize),
    OpenerCrashes(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub runs: Vec<Run>,
    pub closer: Closer,
    pub seen: Seen,
    close: Place,
    tree: Tree,
    sweep: Option<Errand<usize>>,
    prune: Option<Errand<Place>>,
    /// The next step of each that opens the group.
    openers: Vec<usize>,
    /// The group was opened after it was closed.
    opened: bool,
    left: Left,
}

impl World {
    pub fn new(plan: &Plan, variant: Variant) -> World {
        let beginning = |place| Keeper::Beginning { next: asking(variant, place) };
        let steps = closing(variant, plan.close);
        // Renaming first, it makes nothing that is there.
        let renames = steps.iter().position(|step| *step == Close::Rename).unwrap_or_default();
        let next = if variant == Variant::ListsFirst { 0 } else { renames };
        let mut tree = match plan.groups {
            Groups::Missing => Tree::default(),
            Groups::Open | Groups::Closed => Tree::made(),
        };
        if plan.groups == Groups::Closed {
            tree.close(plan.close);
        }
        World {
            runs: plan.places.iter().map(|place| Run::new(*place, beginning(*place))).collect(),
            closer: Closer::Working {
                next,
                inner_seen: false,
                found: vec![None; plan.places.len()],
            },
            seen: Seen::default(),
            close: plan.close,
            tree,
            sweep: None,
            prune: None,
            openers: Vec::new(),
            opened: false,
            left: plan.left,
        }
    }

    /// Those of the closed group whose processes live. Once it was opened again they may, if
    /// they were asked for after the close.
    pub fn living_below_closed(&self) -> usize {
        let meant =
            |run: &&Run| run.alive && run.place.is_below(self.close) && (run.early || !self.opened);
        self.runs.iter().filter(meant).count()
    }

    pub fn possible(&self, variant: Variant, actions: &mut Vec<Happens>) {
        for (index, run) in self.runs.iter().enumerate() {
            let busy = matches!(run.keeper, Keeper::Beginning { .. } | Keeper::Ending { .. });
            if busy || (run.keeper == Keeper::Running && run.asked) {
                actions.push(Happens::Keeper(index));
            }
            if run.keeper == Keeper::Running {
                actions.push(Happens::Exits(index));
            }
            if run.keeper != Keeper::Nobody && self.left.crashes > 0 {
                actions.push(Happens::Crashes(index));
            }
            let swept = self.sweep.is_some_and(|sweep| sweep.of == index);
            if run.is_over() && !swept && self.left.restarts > 0 {
                actions.push(Happens::Restarts(index));
            }
            if run.is_lost() && self.sweep.is_none() {
                actions.push(Happens::SweepBegins(index));
            }
        }
        if self.closer_can_go_on(variant) {
            actions.push(Happens::Closer);
        }
        if matches!(self.closer, Closer::Working { .. }) && self.left.crashes > 0 {
            actions.push(Happens::CloserCrashes);
        }
        if self.sweep.is_some() {
            actions.push(Happens::Sweeper);
            if self.left.crashes > 0 {
                actions.push(Happens::SweeperCrashes);
            }
        }
        if self.prune.is_some() {
            actions.push(Happens::Pruner);
        } else if self.left.prunes > 0 {
            let there = |place: &Place| self.tree.at(*place).dir;
            let places = [Place::Outer, Place::Inner].into_iter().filter(there);
            actions.extend(places.map(Happens::PruneBegins));
        }
        for index in 0..self.openers.len() {
            actions.push(Happens::Opener(index));
            if self.left.crashes > 0 {
                actions.push(Happens::OpenerCrashes(index));
            }
        }
        if self.left.opens > 0 && self.tree.at(self.close).closed.is_some() {
            actions.push(Happens::OpenBegins);
        }
    }

    /// It waits for whom it has asked; whoever is lost is swept meanwhile.
    fn closer_can_go_on(&self, variant: Variant) -> bool {
        let Closer::Working { next, found, .. } = &self.closer else { return false };
        let over = |(run, found): (&Run, &Option<u8>)| {
            found.is_none_or(|generation| !run.listed || run.generation != generation)
        };
        closing(variant, self.close)[*next] != Close::Await || self.runs.iter().zip(found).all(over)
    }

    pub fn after(&self, variant: Variant, what: Happens) -> World {
        let mut world = self.clone();
        match what {
            Happens::Keeper(index) => world.keep(variant, index),
            Happens::Exits(index) => world.runs[index].end(),
            Happens::Crashes(index) => {
                world.left.crashes -= 1;
                let run = &mut world.runs[index];
                (run.keeper, run.listens, run.asked) = (Keeper::Nobody, false, false);
            }
            Happens::Restarts(index) => {
                world.left.restarts -= 1;
                let generation = world.runs[index].generation + 1;
                // A membership that was left behind is still there.
                let registered = world.runs[index].registered;
                let place = world.runs[index].place;
                let keeper = Keeper::Beginning { next: asking(variant, place) };
                world.runs[index] = Run { generation, registered, ..Run::new(place, keeper) };
            }
            Happens::Closer => world.close(variant),
            Happens::CloserCrashes => {
                world.left.crashes -= 1;
                world.closer = Closer::Dead;
            }
            Happens::SweepBegins(of) => world.sweep = Some(Errand { of, next: 0 }),
            Happens::Sweeper => world.sweep(variant),
            Happens::SweeperCrashes => {
                world.left.crashes -= 1;
                world.sweep = None;
            }
            Happens::PruneBegins(of) => {
                world.left.prunes -= 1;
                // It is left alone if it is closed, or one above it.
                let open = !world.tree.is_closed_for(of);
                world.prune = open.then_some(Errand { of, next: 0 });
            }
            Happens::Pruner => world.prune(variant),
            Happens::OpenBegins => {
                world.left.opens -= 1;
                world.openers.push(0);
            }
            Happens::Opener(index) => world.open(variant, index),
            Happens::OpenerCrashes(index) => {
                world.left.crashes -= 1;
                world.openers.remove(index);
            }
        }
        world.forget_what_is_over();
        world
    }

    /// What was seen by a start matters until it is born or refused, and which opener is which
    /// never does.
    fn forget_what_is_over(&mut self) {
        self.openers.sort_unstable();
        for run in &mut self.runs {
            if !matches!(run.keeper, Keeper::Beginning { .. }) {
                run.saw = [None; 2];
            }
            run.early &= run.alive || matches!(run.keeper, Keeper::Beginning { .. });
        }
        self.tree
            .rename_generations(self.runs.iter_mut().flat_map(|run| run.saw.iter_mut().flatten()));
    }

    fn keep(&mut self, variant: Variant, index: usize) {
        match self.runs[index].keeper {
            Keeper::Nobody => {}
            Keeper::Running => {
                self.seen.stopped = true;
                self.runs[index].end();
            }
            Keeper::Beginning { next } => self.begin(variant, index, next),
            Keeper::Ending { next } => {
                let run = &mut self.runs[index];
                let step = ending(variant)[next];
                run.put_away(step);
                run.keeper = match step {
                    End::Unlock => Keeper::Nobody,
                    _ => Keeper::Ending { next: next + 1 },
                };
            }
        }
    }

    fn begin(&mut self, variant: Variant, index: usize, next: usize) {
        let run = &mut self.runs[index];
        let steps = joining(variant, run.place);
        let at = |wanted: fn(&Join) -> bool| steps.iter().position(wanted).unwrap_or_default();
        let make_group = at(|step| matches!(step, Join::Make(_)));
        let make_members = at(|step| matches!(step, Join::MakeMembers));
        let mut goes_on = Goes::On;
        match steps[next] {
            Join::Lock => {}
            Join::List => run.listed = true,
            Join::Listen => run.listens = true,
            Join::Make(place) => {
                if !self.tree.make(place) {
                    goes_on = Goes::To(make_group);
                } else if self.tree.has_mark(place) {
                    goes_on = Goes::To(next + 2);
                }
            }
            Join::Mark(place) => {
                if !self.tree.mark(place, variant == Variant::SameWhenNew) {
                    goes_on = Goes::To(make_group);
                }
            }
            Join::Read(place) => match (self.tree.at(place).open, self.tree.at(place).closed) {
                (None, None) => {
                    self.seen.made_anew |= self.tree.at(Place::Outer).dir;
                    goes_on = Goes::To(make_group);
                }
                (None, Some(_)) => goes_on = Goes::Away,
                (open, _) => {
                    run.saw[place as usize] = open;
                    // It may have been closed and opened before this, and then it is not early.
                    run.early &= place != self.close;
                }
            },
            Join::MakeMembers => {
                if !self.tree.make_members(run.place) {
                    goes_on = Goes::Away;
                }
            }
            Join::Register => {
                if self.tree.at(run.place).members {
                    run.registered = true;
                } else {
                    goes_on = Goes::To(make_members);
                }
            }
            Join::CheckGeneration(place) => {
                let now = self.tree.at(place).open;
                if now != run.saw[place as usize] {
                    goes_on = Goes::Away;
                }
                self.seen.refused_when_open |= now.is_some() && goes_on == Goes::Away;
            }
            Join::CheckClosed(place) => {
                if self.tree.at(place).closed.is_some() {
                    goes_on = Goes::Away;
                }
            }
            // Whoever asked a moment ago may have come too late to prevent it.
            Join::Spawn => {
                run.alive = true;
                run.keeper = Keeper::Running;
                return;
            }
        }
        let run = &mut self.runs[index];
        run.keeper = match goes_on {
            Goes::On => Keeper::Beginning { next: next + 1 },
            Goes::To(step) => Keeper::Beginning { next: step },
            Goes::Away => {
                self.seen.refused = true;
                self.seen.restarted_late |= run.generation > 1;
                Keeper::Ending { next: 0 }
            }
        };
    }

    fn close(&mut self, variant: Variant) {
        let Closer::Working { next, inner_seen, found } = &mut self.closer else { return };
        let steps = closing(variant, self.close);
        let member = |run: &Run, place| run.registered && run.place == place;
        let made = match steps[*next] {
            Close::Make(place) => self.tree.make(place),
            Close::Mark(place) => {
                self.tree.has_mark(place) || self.tree.mark(place, variant == Variant::SameWhenNew)
            }
            Close::Rename => {
                let closed = self.tree.close(self.close);
                for run in &mut self.runs {
                    let was_asked = run.alive || run.saw[self.close as usize].is_some();
                    run.early |= closed && was_asked;
                }
                self.opened &= !closed;
                closed
            }
            Close::ListNames => {
                *inner_seen = self.tree.at(Place::Inner).dir;
                found.fill(None);
                true
            }
            Close::ListMembers(place) => {
                if place == Place::Outer || *inner_seen {
                    for (run, found) in self.runs.iter().zip(found.iter_mut()) {
                        *found = found.or(member(run, place).then_some(run.generation));
                    }
                }
                true
            }
            Close::Ask => {
                for (run, found) in self.runs.iter_mut().zip(found.iter_mut()) {
                    // Who is registered and not listed is over.
                    *found = found.filter(|generation| run.listed && run.generation == *generation);
                    run.asked |= found.is_some() && run.listens;
                }
                true
            }
            Close::Await => true,
        };
        if !made {
            let first = steps.iter().position(|step| matches!(step, Close::Make(_)));
            *next = first.unwrap_or_default();
            return;
        }
        let nobody = found.iter().all(Option::is_none);
        match steps[*next] {
            Close::Await if !nobody => {
                let list = steps.iter().position(|step| *step == Close::ListNames);
                *next = list.unwrap_or_default();
            }
            _ => *next += 1,
        }
        if *next == steps.len() {
            self.closer = Closer::Returned;
        }
    }

    /// Kills first, then puts the run away.
    fn sweep(&mut self, variant: Variant) {
        let Some(Errand { of, next }) = self.sweep else { return };
        let run = &mut self.runs[of];
        self.sweep = Some(Errand { of, next: next + 1 });
        match next {
            0 => run.alive = false,
            next => {
                let step = ending(variant)[next - 1];
                run.put_away(step);
                if step == End::Unlock {
                    self.seen.swept = true;
                    self.sweep = None;
                }
            }
        }
    }

    /// `forget_if_empty`, once it has looked for `closed`.
    fn prune(&mut self, variant: Variant) {
        let Some(Errand { of, next }) = self.prune else { return };
        let is_done = match next {
            0 => {
                let empty = !self.runs.iter().any(|run| run.registered && run.place == of);
                self.tree.at_mut(of).members &= !empty;
                !empty
            }
            1 => {
                self.tree.at_mut(of).open = None;
                false
            }
            2 => self.tree.remove(of),
            // Something is in it again, which needs a mark.
            3 => self.tree.has_mark(of),
            _ => {
                self.tree.mark(of, variant == Variant::SameWhenNew);
                true
            }
        };
        self.prune = (!is_done).then_some(Errand { of, next: next + 1 });
    }

    fn open(&mut self, variant: Variant, index: usize) {
        let (steps, next, of) = (opening(variant), self.openers[index], self.close);
        let is_done = match steps[next] {
            Open::RemoveSecondMark => {
                self.tree.at_mut(of).open = None;
                false
            }
            Open::RemoveClosed => {
                self.opened |= self.tree.remove_closed(of);
                false
            }
            Open::LookForMark => self.tree.has_mark(of),
            Open::Mark => {
                self.tree.mark(of, false);
                true
            }
            Open::Change => {
                self.tree.change(of);
                false
            }
            Open::RenameBack => {
                self.opened |= self.tree.rename_back(of);
                false
            }
        };
        if is_done || next + 1 == steps.len() {
            self.openers.remove(index);
        } else {
            self.openers[index] += 1;
        }
    }
}

/// How a start goes on after a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    To(usize),
    /// It is refused, and leaves.
    Away,
}

impl Run {
    fn end(&mut self) {
        self.alive = false;
        self.keeper = Keeper::Ending { next: 0 };
    }

    fn put_away(&mut self, step: End) {
        match step {
            End::Leave => self.registered = false,
            End::Unlist => self.listed = false,
            End::Unlock => self.listens = false,
        }
    }
}
