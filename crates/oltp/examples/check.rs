//! Checks the consistency conditions of a database and prints how long it took:
//! `check FILE`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let database = PathBuf::from(std::env::args().nth(1).ok_or("name the database file")?);
    let start = Instant::now();
    let conditions = oltp::sqlite::check(&database, None)?;
    for condition in &conditions {
        let verdict = if condition.holds { "holds" } else { "VIOLATED" };
        println!("{:>9}  {verdict}  {}", condition.clause, condition.states);
        condition.detail.iter().for_each(|row| println!("           {row}"));
    }
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(ExitCode::from(u8::from(!conditions.iter().all(|condition| condition.holds))))
}
