//! A fork storm: whoever survives a sweep breeds on.
//!
//! The number alive is bounded by a table of places in shared memory, each held by a pid.
//! A place is free again once its holder is dead and buried: with a mere counter the killed
//! would still be counted, and the storm would die down by itself after so many kills; and
//! if the unburied did not count, a tree that nobody buries would use up the machine's pids.

use std::process::exit;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::process::{Pid, getpid, setsid, test_kill_process};

use crate::Life;
use crate::raw::{self, fork};
use crate::stage::{Stage, bury, tend};

/// 300 alive at most: these, the leader, and room for those that find their place taken
/// over as they are born, and leave.
const PLACES: usize = 280;
/// The storm is over after so many forks.
const MOST_FORKS: u32 = 200_000;
/// It counts as raging with this many alive.
const RAGING: usize = 100;
/// Places looked at before the storm is taken for full.
const LOOKS: usize = 8;
/// A breeder exits after so many children, or so many vain attempts in a row.
const BROOD: usize = 16;
const PATIENCE: usize = 40;
const NAP: Duration = Duration::from_micros(200);

pub fn storm(stage: &Stage) -> Life {
    let words = raw::shared_words(PLACES + 1)?;
    let (forks, places) = words.split_first().expect("one word more than places");
    let storm = Storm { forks, places };
    let mut dice = Dice::new();
    while storm.alive() < RAGING {
        storm.breed(&mut dice);
        bury();
    }
    stage.announce(storm.alive() + 1)?;
    while !storm.is_over() {
        storm.breed(&mut dice);
        bury();
    }
    tend()
}

#[derive(Clone, Copy)]
struct Storm {
    forks: &'static AtomicU32,
    places: &'static [AtomicU32],
}

impl Storm {
    fn is_over(self) -> bool {
        self.forks.load(SeqCst) >= MOST_FORKS
    }

    fn alive(self) -> usize {
        self.places.iter().filter(|place| is_held(place.load(SeqCst))).count()
    }

    /// Forks one child if there is a place for it. Says whether it did.
    fn breed(self, dice: &mut Dice) -> bool {
        let me = own_pid();
        let Some(place) = self.take_place(me, dice) else {
            sleep(NAP);
            return false;
        };
        self.forks.fetch_add(1, SeqCst);
        match fork() {
            Ok(Some(child)) => {
                // It may be long until the child runs, and we may be gone by then.
                let child = child.as_raw_pid().cast_unsigned();
                let _ = place.compare_exchange(me, child, SeqCst, SeqCst);
                true
            }
            Ok(None) => self.grow_up(me, place),
            Err(_too_many) => {
                place.store(0, SeqCst);
                sleep(NAP);
                false
            }
        }
    }

    /// The place is held in the parent's name until either of them puts in the child's.
    fn take_place(self, me: u32, dice: &mut Dice) -> Option<&'static AtomicU32> {
        if self.is_over() {
            return None;
        }
        (0..LOOKS).find_map(|_| {
            let place = &self.places[dice.below(PLACES)];
            let holder = place.load(SeqCst);
            let taken =
                !is_held(holder) && place.compare_exchange(holder, me, SeqCst, SeqCst).is_ok();
            taken.then_some(place)
        })
    }

    fn grow_up(self, parent: u32, place: &AtomicU32) -> ! {
        let me = own_pid();
        // The parent was killed, and somebody took the place over before we could.
        if place.compare_exchange(parent, me, SeqCst, SeqCst).is_err_and(|holder| holder != me) {
            exit(0);
        }
        let mut dice = Dice::new();
        if dice.below(4) == 0 {
            if dice.below(2) == 0 {
                let _ = setsid();
            }
            self.breed_a_brood(&mut dice);
        } else {
            sleep(Duration::from_micros(dice.below(2000) as u64));
        }
        exit(0)
    }

    fn breed_a_brood(self, dice: &mut Dice) {
        let (mut born, mut vain) = (0, 0);
        while born < BROOD && vain < PATIENCE {
            if self.breed(dice) {
                (born, vain) = (born + 1, 0);
            } else {
                vain += 1;
            }
            bury();
        }
    }
}

fn own_pid() -> u32 {
    getpid().as_raw_pid().cast_unsigned()
}

fn is_held(pid: u32) -> bool {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else {
        return false;
    };
    test_kill_process(pid) != Err(Errno::SRCH)
}

/// Just random enough to keep the processes of a storm out of step.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |now| u64::from(now.subsec_nanos()));
        Self(u64::from(own_pid()) << 32 | nanos | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}
