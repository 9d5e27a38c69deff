//! `fullstop`: put it in front of a command, and nothing outlives it.
#![forbid(unsafe_code)]
#![no_main]

mod attach;
mod demo;
mod doctor;
mod each;
mod explain;
mod fail;
mod following;
mod forget;
mod logs;
mod print;
mod ps;
mod run;
mod send;
mod show;
mod start;
mod stop;
mod streams;
mod tidy;
mod watch;
mod window;

use fail::{Fail, complain};
use fullstop::front::hide_arguments_behind;
use fullstop::{Ending, Order};
use fullstop_cli::args::{self, Call, Man, UsageError};
use fullstop_cli::{completions, help, man};
use std::process::exit;

fullstop::entry!(start);

fn start() {
    fullstop::init();
    let call = args::parse();
    if let Ok(Call::Run(_) | Call::Start(_)) = call {
        // What follows `run` or `start` is the command's, and is to be found there alone.
        hide_arguments_behind(2);
    }
    let done = match call {
        Ok(Call::Run(options)) => run::run(*options).map(|ending| Ending::end(ending)),
        Ok(call) => other(call),
        Err(UsageError(why)) => Err(why.into()),
    };
    match done {
        Ok(()) => exit(0),
        Err(Fail { why, status }) => {
            if !why.is_empty() {
                complain(why);
            }
            exit(status.into())
        }
    }
}

/// Everything but `run`, which is in a hurry.
#[cold]
fn other(call: Call) -> Result<(), Fail> {
    match call {
        Call::Run(_) => Ok(()),
        Call::Start(options) => start::start(*options),
        Call::Restart { ids, json } => start::restart(&ids, json),
        Call::Ps(options) => ps::ps(&options),
        Call::Tree { id, json } => ps::tree(&id, json),
        Call::Show { id, json } => show::show(&id, json),
        Call::Attach(options) => attach::attach(&options),
        Call::Logs(options) => logs::logs(&options),
        Call::Events(options) => watch::events(&options),
        Call::Wait(options) => watch::wait(&options),
        Call::Stop(options) => {
            let order = options.within.map_or(Order::Stop, Order::StopWithin);
            stop::stop(&options, order)
        }
        Call::Kill(options) => stop::stop(&options, Order::Kill),
        Call::Signal { signal, ids, json } => watch::signal(signal, &ids, json),
        Call::Send(options) => send::send(&options),
        Call::CloseStdin { id, json } => send::close_stdin(&id, json),
        Call::Group(call) => tidy::group(&call),
        Call::Rm { ids, forget: true, json } => forget::some(&ids, json),
        Call::Rm { ids, forget: false, json } => tidy::rm(&ids, json),
        Call::Prune(options) if options.forget => forget::all(options.dry_run, options.json),
        Call::Prune(options) => tidy::prune(&options),
        Call::Sweep { dry_run, json } => tidy::sweep(dry_run, json),
        Call::Doctor { json } => doctor::doctor(json),
        Call::Demo => demo::demo(),
        Call::Help(command) => print::print(&help::text(command)),
        Call::Version => print::print(concat!("fullstop ", env!("CARGO_PKG_VERSION"), "\n")),
        Call::Completions(shell) => print::print(&completions::script(shell)),
        Call::Man(Man::Page(command)) => print::print(&man::page(command)),
        Call::Man(Man::Dir(dir)) => Ok(man::write_all(dir.as_ref())?),
    }
}
