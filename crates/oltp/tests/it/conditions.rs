//! Each consistency condition (TPC-C 5.11 clause 3.3.2) fails on a defect planted for it.

use oltp::sqlite::check;
use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::{Dataset, Mix, Options, Scale, SqliteSettings, Synchronous, run};
use units::Nanos;

use crate::{Database, violated};

/// Plants a defect in a fresh database; exactly these conditions must fail.
fn planted(defect: &str, expected: &[u32]) {
    let database = Database::new(Scale::miniature(2));
    let path = database.settings.database();
    assert_eq!(violated(&path), [] as [u32; 0], "before: {defect}");
    let changed = database.sql().execute(defect, []).unwrap();
    assert!(changed > 0, "nothing was planted by: {defect}");
    assert_eq!(violated(&path), expected, "{defect}");
}

#[test]
fn each_condition_fails_on_its_defect() {
    // W_YTD and D_YTD also stand in conditions 8 and 9; a defect of one side is told apart by the
    // set of conditions that fail.
    planted("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", &[1, 8]);
    planted("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 1", &[1, 9]);
    planted(
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
        &[2],
    );
    planted(
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_w_id = 1 AND d_id = 3",
        &[2],
    );
    planted(
        "UPDATE order_line SET ol_o_id = 999 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3 \
         AND ol_number = 1",
        &[6, 7, 13],
    );
    planted("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_id = 5", &[4, 6]);
    planted(
        "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 60 \
         AND ol_number = 5",
        &[4, 6],
    );
    // A gap in the middle of the new orders: also an order without carrier and NEW-ORDER row, and
    // one order too many that counts as delivered.
    planted(
        "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50",
        &[3, 5, 11],
    );
    planted(
        "UPDATE orders SET o_carrier_id = 3 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 60",
        &[5, 7, 15],
    );
    planted(
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
        &[5, 7],
    );
    planted(
        "UPDATE order_line SET ol_delivery_d = NULL \
         WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 2",
        &[7],
    );
    planted(
        "UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 7 AND c_d_id = 2",
        &[10, 12],
    );
    planted("UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 7", &[12]);
    planted("UPDATE order_line SET ol_amount = 5 WHERE ol_o_id = 1 AND ol_number = 1", &[10, 12]);
    planted("UPDATE history SET h_amount = h_amount + 1 WHERE rowid = 9", &[8, 9, 10]);
    planted("UPDATE history SET h_w_id = 2 WHERE rowid = 9", &[8, 9]);
    planted("UPDATE history SET h_c_id = h_c_id + 1 WHERE rowid = 9", &[10, 14]);
}

/// Rows that are missing altogether are found too: comparisons are null-safe.
#[test]
fn missing_rows_are_violations() {
    planted("DELETE FROM warehouse WHERE w_id = 2", &[1, 8, 16]);
    planted("DELETE FROM district WHERE d_w_id = 2 AND d_id = 2", &[1, 2, 9, 16]);
    planted("DELETE FROM customer WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 3", &[10, 16]);
    planted("DELETE FROM orders WHERE o_w_id = 2 AND o_d_id = 2 AND o_id = 3", &[4, 6, 7, 11]);
    planted("DELETE FROM orders WHERE o_w_id = 2 AND o_d_id = 2", &[2, 4, 5, 6, 7, 11]);
    planted("DELETE FROM history WHERE h_w_id = 1", &[8, 9, 10, 14]);
    planted("DELETE FROM order_line", &[4, 6]);
}

/// What the specification's conditions do not look at.
#[test]
fn stock_counters_and_items_are_looked_at() {
    planted("DELETE FROM stock WHERE s_w_id = 2 AND s_i_id = 17", &[16]);
    planted("UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_w_id = 1 AND s_i_id = 5", &[13]);
    planted("UPDATE stock SET s_order_cnt = 1 WHERE s_w_id = 1 AND s_i_id = 5", &[13]);
    planted("UPDATE stock SET s_remote_cnt = 1 WHERE s_w_id = 1 AND s_i_id = 5", &[13]);
    planted("UPDATE customer SET c_payment_cnt = 2 WHERE c_id = 4 AND c_d_id = 1", &[14]);
    planted("UPDATE customer SET c_delivery_cnt = 1 WHERE c_id = 4 AND c_d_id = 1", &[15]);
    planted("UPDATE item SET i_price = i_price + 1 WHERE i_id = 9", &[17]);
    planted("UPDATE item SET i_data = '' WHERE i_id = 9", &[17]);
    planted("DELETE FROM item WHERE i_id = 9", &[17]);
}

#[test]
fn offending_rows_are_named_and_bounded() {
    let database = Database::new(Scale::miniature(1));
    database.sql().execute("UPDATE customer SET c_balance = c_balance + 1", []).unwrap();
    let results = check(&database.settings.database(), None).unwrap();
    let tenth = &results[9];
    assert_eq!((tenth.number, tenth.clause.as_str()), (10, "3.3.2.10"));
    assert_eq!((tenth.violations, tenth.detail.len()), (180, 10));
    assert_eq!(
        tenth.detail[0],
        "c_w_id 1, c_d_id 1, c_id 1, c_balance -999, delivered 0, paid 1000"
    );
}

/// Condition 11 is about the time before a run; after one its generalised form is checked, and
/// still fails on a defect.
#[test]
fn condition_eleven_after_a_run() {
    let database = Database::new(Scale::miniature(1));
    let path = database.settings.database();
    let options = Options {
        database: oltp::Database::Sqlite(SqliteSettings {
            synchronous: Synchronous::Off,
            ..database.settings.clone()
        }),
        users: 3,
        mix: Mix::new([10.0, 1.0, 0.0, 1.0, 0.0]).unwrap(),
        warmup: Nanos::ZERO,
        measure: Nanos(200_000_000),
        ..Options::default()
    };
    let result = run(&options, &events::Quiet).unwrap();
    assert!(result.delivery.executed > 0);
    let delivered =
        database.get("SELECT (SELECT count(*) FROM orders) - (SELECT count(*) FROM new_order)");
    assert!(delivered > 3 * 42, "{delivered}");
    assert_eq!(violated(&path), [] as [u32; 0]);
    let defect = "DELETE FROM new_order WHERE no_d_id = 1 \
                  AND no_o_id = (SELECT max(no_o_id) FROM new_order WHERE no_d_id = 1)";
    database.sql().execute(defect, []).unwrap();
    assert!(violated(&path).contains(&11));
    // Lines, payments and deliveries of the run are counted.
    let last = "(SELECT max(o_id) FROM orders WHERE o_w_id = 1 AND o_d_id = 1)";
    let defects = [
        (
            13,
            format!(
                "UPDATE order_line SET ol_quantity = 11 WHERE ol_d_id = 1 AND ol_o_id = {last}"
            ),
        ),
        (14, "DELETE FROM history WHERE rowid = (SELECT max(rowid) FROM history)".to_owned()),
        (15, "UPDATE customer SET c_delivery_cnt = 0 WHERE c_delivery_cnt > 0".to_owned()),
    ];
    for (number, defect) in defects {
        assert!(!violated(&path).contains(&number), "{number} holds before {defect}");
        assert!(database.sql().execute(&defect, []).unwrap() > 0, "{defect}");
        assert!(violated(&path).contains(&number), "{defect}");
    }
}

/// Each condition of bank and commit fails on its own defect.
#[test]
fn conditions_of_bank_and_commit_fail_on_their_defects() {
    let bank = Dataset::Bank(BankScale { branches: 2, accounts_per_branch: 30 });
    let commit = Dataset::Commit(CommitScale { rows: 9 });
    let defects = [
        (bank, 1, "UPDATE branches SET bbalance = 5 WHERE bid = 2"),
        (bank, 2, "UPDATE tellers SET tbalance = -5 WHERE tid = 11"),
        (bank, 3, "UPDATE accounts SET abalance = 1 WHERE aid = 60"),
        (bank, 4, "DELETE FROM accounts WHERE aid = 7"),
        (commit, 1, "DELETE FROM commit_row WHERE id = 4"),
    ];
    for (dataset, number, defect) in defects {
        let directory = crate::temporary_directory();
        let settings =
            SqliteSettings { directory: directory.path().to_owned(), ..SqliteSettings::default() };
        let database = oltp::Database::Sqlite(settings.clone());
        let load = oltp::LoadOptions { database, dataset, seed: 1 };
        oltp::load(&load, &events::Quiet).unwrap();
        let path = settings.database_of(dataset.workload());
        assert!(check(&path, None).unwrap().iter().all(|result| result.holds));
        rusqlite::Connection::open(&path).unwrap().execute_batch(defect).unwrap();
        let results = check(&path, None).unwrap();
        let failed: Vec<u32> = results.iter().filter(|r| !r.holds).map(|r| r.number).collect();
        assert_eq!(failed, [number], "{defect}");
        assert!(!results[number as usize - 1].detail.is_empty());
    }
}
