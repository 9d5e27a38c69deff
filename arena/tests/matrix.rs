//! The matrix of issue 2: see `arena::matrix`.

use std::process::ExitCode;

fn main() -> ExitCode {
    arena::main(arena::matrix::register)
}
