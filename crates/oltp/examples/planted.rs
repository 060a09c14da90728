//! Defects planted one at a time in a loaded order entry, one or more per table and relation, and
//! whether the consistency check names each: `planted DIRECTORY [DBMS...]`, for example `planted
//! /var/tmp/planted sqlite postgresql mariadb`. DIRECTORY must not exist.
//!
//! Prints a line per defect and, for each DBMS, how many were found. A defect is found where
//! exactly the conditions fail that it breaks, no other, and none fails before and after it.

use std::error::Error;
use std::path::Path;

use dbms::{Instance, Login, Places, Settings, System};
use oltp::{Database, Dataset, LoadOptions, Scale, ServerSettings, SqliteSettings, Workload};

type Failure = Box<dyn Error>;

/// Executes statements.
type Sql = Box<dyn FnMut(&str) -> Result<(), Failure>>;

/// A defect: the table it changes, what it is, how it is planted, and the conditions it breaks.
type Defect = (&'static str, &'static str, &'static str, &'static [u32]);

const DEFECTS: [Defect; 12] = [
    (
        "warehouse",
        "W_YTD one too high",
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
        &[1, 8],
    ),
    (
        "district",
        "D_NEXT_O_ID ahead of the orders",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
        &[2],
    ),
    (
        "customer",
        "a customer is lost",
        "DELETE FROM customer WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 3",
        &[10, 16],
    ),
    (
        "customer",
        "a delivery is counted that was not made",
        "UPDATE customer SET c_delivery_cnt = 1 WHERE c_id = 4 AND c_d_id = 1 AND c_w_id = 1",
        &[15],
    ),
    (
        "history",
        "a payment is lost",
        "DELETE FROM history WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 9",
        &[8, 9, 10, 14],
    ),
    (
        "history",
        "a payment belongs to another customer",
        "UPDATE history SET h_c_id = 10 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 9",
        &[10, 14],
    ),
    (
        "new_order",
        "a gap among the new orders",
        "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50",
        &[3, 5, 11],
    ),
    (
        "orders",
        "an order is delivered and still new",
        "UPDATE orders SET o_carrier_id = 3 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 60",
        &[5, 7, 15],
    ),
    (
        "order_line",
        "a line is lost",
        "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 60 \
         AND ol_number = 5",
        &[4, 6],
    ),
    (
        "order_line",
        "a delivered line has no date",
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 \
         AND ol_o_id = 1 AND ol_number = 2",
        &[7],
    ),
    ("stock", "a stock row is lost", "DELETE FROM stock WHERE s_w_id = 2 AND s_i_id = 17", &[16]),
    ("item", "a price has changed", "UPDATE item SET i_price = i_price + 1 WHERE i_id = 9", &[17]),
];

/// A loaded database, its SQL and its check.
struct Loaded {
    database: Database,
    sql: Sql,
    instance: Option<Instance>,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("planted DIRECTORY [DBMS...]")?;
    let directory = Path::new(&directory);
    std::fs::create_dir(directory)?;
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        names.push("sqlite".to_owned());
    }
    for name in names {
        let mut loaded = open(&name, &directory.join(&name))?;
        let dataset = Dataset::OrderEntry(Scale::miniature(2));
        let options = LoadOptions { database: loaded.database.clone(), dataset, seed: 42 };
        oltp::load(&options, &events::Quiet)?;
        loaded.sql = sql(&loaded, &directory.join(&name))?;
        let found = all(&name, &mut loaded)?;
        println!("{name}: {found} of {} defects found", DEFECTS.len());
        if let Some(instance) = loaded.instance.take() {
            instance.remove()?;
        }
    }
    Ok(std::fs::remove_dir_all(directory)?)
}

/// Makes a place for a database.
fn open(name: &str, directory: &Path) -> Result<Loaded, Failure> {
    let nothing = || Box::new(|_: &str| Ok(()));
    let system = match name {
        "sqlite" => {
            std::fs::create_dir(directory)?;
            let directory = directory.to_owned();
            let database = Database::Sqlite(SqliteSettings { directory, ..Default::default() });
            return Ok(Loaded { database, sql: nothing(), instance: None });
        }
        "postgresql" => System::Postgresql,
        "mariadb" => System::Mariadb,
        other => return Err(format!("no DBMS '{other}'").into()),
    };
    let (places, settings) = (Places::at(directory), Settings::default());
    let mut instance = Instance::create(system, &places, &settings, &events::Quiet)?.temporary();
    instance.start(&events::Quiet)?;
    let login = instance.login();
    let server = ServerSettings::new(login.address, login.user);
    let database = match system {
        System::Postgresql => Database::Postgresql(server),
        System::Mariadb => Database::Mariadb(server),
    };
    Ok(Loaded { database, sql: nothing(), instance: Some(instance) })
}

/// A connection to what was loaded.
fn sql(loaded: &Loaded, directory: &Path) -> Result<Sql, Failure> {
    let Some(instance) = &loaded.instance else {
        let settings =
            SqliteSettings { directory: directory.to_owned(), ..SqliteSettings::default() };
        let connection = rusqlite::Connection::open(settings.database())?;
        return Ok(Box::new(move |sql| Ok(connection.execute_batch(sql)?)));
    };
    let database = Workload::OrderEntry.identifier().to_owned();
    let login = Login { database, ..instance.login() };
    Ok(match instance.system() {
        System::Postgresql => {
            let mut connection = dbms::postgresql::Connection::connect(&login)?;
            Box::new(move |sql| Ok(connection.execute(sql)?))
        }
        System::Mariadb => {
            let mut connection = dbms::mariadb::Connection::connect(&login)?;
            Box::new(move |sql| Ok(connection.execute(sql).map(drop)?))
        }
    })
}

/// Numbers of the conditions that fail.
fn violated(loaded: &Loaded) -> Result<Vec<u32>, Failure> {
    let dbms = loaded.database.dbms(Workload::OrderEntry)?;
    let failed = dbms.check()?.into_iter().filter(|condition| !condition.holds);
    Ok(failed.map(|condition| condition.number).collect())
}

/// Plants each defect in turn, each in the sound database; how many were found.
fn all(name: &str, loaded: &mut Loaded) -> Result<usize, Failure> {
    let mut found = 0;
    for (table, what, defect, expected) in DEFECTS {
        let before = violated(loaded)?;
        (loaded.sql)(&format!("CREATE TABLE kept_rows AS SELECT * FROM {table}"))?;
        (loaded.sql)(defect)?;
        let broken = violated(loaded)?;
        for sql in [
            format!("DELETE FROM {table}"),
            format!("INSERT INTO {table} SELECT * FROM kept_rows"),
            "DROP TABLE kept_rows".to_owned(),
        ] {
            (loaded.sql)(&sql)?;
        }
        let named = before.is_empty() && broken == expected;
        found += usize::from(named);
        let verdict = if named { "found" } else { "NOT FOUND" };
        println!("{name}: {table}, {what}: {verdict}, by conditions {broken:?}");
    }
    let after = violated(loaded)?;
    if !after.is_empty() {
        return Err(format!("{name}: {after:?} fail after all defects were taken back").into());
    }
    Ok(found)
}
