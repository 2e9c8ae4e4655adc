//! The `fleet` program: everything is in the library.

fn main() -> std::process::ExitCode {
    fleet::cli::main()
}
