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
mod prepare;
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

use fail::{Fail, complain, wait};
use fullstop::Order;
use fullstop_cage::linux::hide_arguments_behind;
use fullstop_cli::args::{self, Call, Man, UsageError};
use fullstop_cli::{completions, help, man};
use fullstop_keeper::Ending;
use std::process::exit;

fullstop_cage::entry!(start);

fn start() {
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
        Call::Attach(options) => attach::attach(&options),
        Call::Help(command) => print::print(&help::text(command)),
        Call::Version => print::print(concat!("fullstop ", env!("CARGO_PKG_VERSION"), "\n")),
        Call::Completions(shell) => print::print(&completions::script(shell)),
        Call::Man(Man::Page(command)) => print::print(&man::page(command)),
        Call::Man(Man::Dir(dir)) => Ok(man::write_all(dir.as_ref())?),
        call => wait(about_runs(call)),
    }
}

/// What looks at runs, or speaks with their keepers.
async fn about_runs(call: Call) -> Result<(), Fail> {
    match call {
        Call::Start(options) => start::start(*options).await,
        Call::Restart { which, json } => start::restart(&which, json).await,
        Call::Ps(options) => ps::ps(&options).await,
        Call::Tree { id, json } => ps::tree(&id, json).await,
        Call::Show { id, json } => show::show(&id, json).await,
        Call::Logs(options) => logs::logs(&options).await,
        Call::Events(options) => watch::events(&options).await,
        Call::Wait(options) => watch::wait(&options).await,
        Call::Stop(options) => {
            let order = options.within.map_or(Order::Stop, Order::StopWithin);
            stop::stop(&options, order).await
        }
        Call::Kill(options) => stop::stop(&options, Order::Kill).await,
        Call::Signal { signal, which, json } => watch::signal(signal, &which, json).await,
        Call::Send(options) => send::send(&options).await,
        Call::CloseStdin { id, json } => send::close_stdin(&id, json).await,
        Call::Group(call) => tidy::group(&call).await,
        Call::Rm { ids, forget: true, json } => forget::some(&ids, json).await,
        Call::Rm { ids, forget: false, json } => tidy::rm(&ids, json).await,
        Call::Prune(options) if options.forget => forget::all(options.dry_run, options.json).await,
        Call::Prune(options) => tidy::prune(&options).await,
        Call::Sweep { dry_run, json } => tidy::sweep(dry_run, json).await,
        Call::Doctor { json } => doctor::doctor(json).await,
        Call::Demo => demo::demo().await,
        // Those that need no runtime, or have one of their own.
        Call::Run(_)
        | Call::Attach(_)
        | Call::Help(_)
        | Call::Version
        | Call::Completions(_)
        | Call::Man(_) => Ok(()),
    }
}
