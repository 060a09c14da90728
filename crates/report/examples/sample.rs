//! Writes the sample page: `cargo run -p report --example sample -- PATH.html`, or to the terminal
//! without a path. Its numbers are made up; it shows what a page can hold.

#[path = "../tests/it/sample.rs"]
mod sample;

fn main() -> std::io::Result<()> {
    let page = sample::page();
    if let Some(path) = std::env::args_os().nth(1) {
        return std::fs::write(path, report::html(&page));
    }
    print!("{}", report::terminal(&page, 100, std::env::var_os("NO_COLOR").is_none()));
    Ok(())
}
