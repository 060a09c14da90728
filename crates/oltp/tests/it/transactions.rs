//! The five transactions, one at a time, against what the clauses say they do.

use oltp::driver::{Dbms, Meter, Outcome, Reply, Worker};
use oltp::sqlite::Sqlite;
use oltp::workload::input::{Input, LINES_MAX, NewOrder, OrderLine, Request, Who};
use oltp::workload::text::last_name;
use oltp::{Dataset, Scale, Workload};

use crate::{Database, violated};

const NOW_MS: i64 = 1_800_000_000_000;

/// Executes one request of warehouse 1.
fn execute(database: &Database, request: Request) -> (Outcome, Reply) {
    let sqlite = Sqlite::new(&database.settings, Workload::OrderEntry);
    let driver = sqlite.driver(Dataset::OrderEntry(database.scale)).unwrap();
    let meter = Meter::default();
    let mut result = None;
    driver
        .with_session(Worker { index: 0, writes: true }, &meter, &mut |session| {
            let mut reply = Reply::default();
            let input = Input { warehouse: 1, request };
            let outcome = session.execute(&input, NOW_MS, &mut reply).expect("it executes");
            result = Some((outcome, reply));
            Ok(())
        })
        .unwrap();
    result.unwrap()
}

fn order(lines: &[(u32, u32, u32)]) -> NewOrder {
    let mut order = NewOrder {
        district: 2,
        customer: 7,
        rolls_back: false,
        count: lines.len(),
        lines: [OrderLine::default(); LINES_MAX],
    };
    for (line, &(item, supply, quantity)) in order.lines.iter_mut().zip(lines) {
        *line = OrderLine { item, supply, quantity };
    }
    order
}

#[test]
fn new_order_writes_order_lines_and_stock() {
    let database = Database::new(Scale::miniature(2));
    let sql = database.sql();
    sql.execute_batch(
        "UPDATE stock SET s_quantity = 20 WHERE s_i_id = 11;
         UPDATE stock SET s_quantity = 19 WHERE s_i_id = 12;
         UPDATE item SET i_price = 1000 * (i_id - 10) WHERE i_id BETWEEN 11 AND 13;
         UPDATE customer SET c_discount = 1000 WHERE c_id = 7;
         UPDATE warehouse SET w_tax = 500; UPDATE district SET d_tax = 1500;",
    )
    .unwrap();
    let lines = [(11, 1, 10), (12, 1, 10), (13, 2, 1), (14, 1, 3), (15, 1, 3)];
    let (outcome, reply) = execute(&database, Request::NewOrder(order(&lines)));
    assert_eq!((outcome, reply.order, reply.customer), (Outcome::Committed, 61, 7));

    let get = |what: &str| database.get(what);
    assert_eq!(get("SELECT d_next_o_id FROM district WHERE d_w_id = 1 AND d_id = 2"), 62);
    let of_order = "o_w_id = 1 AND o_d_id = 2 AND o_id = 61";
    assert_eq!(get(&format!("SELECT o_ol_cnt FROM orders WHERE {of_order}")), 5);
    assert_eq!(get(&format!("SELECT o_all_local FROM orders WHERE {of_order}")), 0);
    assert_eq!(get(&format!("SELECT o_carrier_id IS NULL FROM orders WHERE {of_order}")), 1);
    assert_eq!(get(&format!("SELECT o_entry_d FROM orders WHERE {of_order}")), NOW_MS);
    assert_eq!(get("SELECT count(*) FROM new_order WHERE no_o_id = 61"), 1);
    // Clause 2.4.2.2: 20 less 10 leaves ten; 19 less 10 would leave nine, so 91 come in.
    let stock = |warehouse: u32, item: u32, column: &str| {
        get(&format!("SELECT {column} FROM stock WHERE s_w_id = {warehouse} AND s_i_id = {item}"))
    };
    assert_eq!((stock(1, 11, "s_quantity"), stock(1, 12, "s_quantity")), (10, 100));
    assert_eq!((stock(1, 11, "s_ytd"), stock(1, 11, "s_order_cnt")), (10, 1));
    assert_eq!((stock(2, 13, "s_remote_cnt"), stock(2, 13, "s_ytd")), (1, 1));
    assert_eq!((stock(1, 13, "s_order_cnt"), stock(1, 11, "s_remote_cnt")), (0, 0));
    let line = |number: u32, column: &str| {
        get(&format!("SELECT {column} FROM order_line WHERE ol_o_id = 61 AND ol_number = {number}"))
    };
    // OL_AMOUNT is quantity times price, without tax and discount.
    assert_eq!((line(1, "ol_amount"), line(3, "ol_amount")), (10_000, 3000));
    assert_eq!((line(3, "ol_supply_w_id"), line(1, "ol_delivery_d IS NULL")), (2, 1));
    let same_text = "SELECT ol_dist_info = s_dist_02 FROM order_line JOIN stock \
         ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id WHERE ol_o_id = 61 AND ol_number = 3";
    assert_eq!(get(same_text), 1);
    let sum = get("SELECT sum(ol_amount) FROM order_line WHERE ol_o_id = 61");
    // Discount 10 %, taxes 5 + 15 %: 0.9 x 1.2 = 1.08, rounded half up.
    assert_eq!(reply.total, (sum * 108 + 50) / 100);
    // The test set the prices of its items itself.
    assert_eq!(violated(&database.settings.database()), [17]);
}

#[test]
fn an_unused_item_rolls_everything_back() {
    let database = Database::new(Scale::miniature(1));
    let mut request = order(&[(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (201, 1, 1)]);
    request.rolls_back = true;
    let before = database.get("SELECT sum(s_ytd + s_quantity) FROM stock");
    let (outcome, _) = execute(&database, Request::NewOrder(request));
    assert_eq!(outcome, Outcome::RolledBack);
    assert_eq!(database.get("SELECT sum(s_ytd + s_quantity) FROM stock"), before);
    assert_eq!(database.get("SELECT max(o_id) FROM orders"), 60);
    assert_eq!(violated(&database.settings.database()), [] as [u32; 0]);
}

fn payment(who: Who) -> Request {
    Request::Payment {
        district: 2,
        customer_warehouse: 2,
        customer_district: 3,
        who,
        amount: 12_345,
    }
}

#[test]
fn payment_books_to_warehouse_district_customer_and_history() {
    let database = Database::new(Scale::miniature(2));
    let sql = database.sql();
    sql.execute("UPDATE customer SET c_credit = 'GC' WHERE c_id = 9", []).unwrap();
    let (outcome, reply) = execute(&database, payment(Who::Id(9)));
    assert_eq!((outcome, reply.customer), (Outcome::Committed, 9));
    let get = |what: &str| database.get(what);
    assert_eq!(get("SELECT w_ytd FROM warehouse WHERE w_id = 1"), 3 * 60 * 1000 + 12_345);
    assert_eq!(get("SELECT d_ytd FROM district WHERE d_w_id = 1 AND d_id = 2"), 72_345);
    let customer = "FROM customer WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 9";
    assert_eq!(get(&format!("SELECT c_balance {customer}")), -1000 - 12_345);
    assert_eq!(get(&format!("SELECT c_ytd_payment {customer}")), 1000 + 12_345);
    assert_eq!(get(&format!("SELECT c_payment_cnt {customer}")), 2);
    let history = "SELECT h_c_id * 1000000 + h_c_d_id * 10000 + h_c_w_id * 100 + h_d_id * 10 \
         + h_w_id FROM history WHERE h_amount = 12345";
    assert_eq!(get(history), 9_030_221);
    let data = "SELECT h_data = w_name || '    ' || d_name FROM history JOIN warehouse \
         ON w_id = h_w_id JOIN district ON d_w_id = h_w_id AND d_id = h_d_id \
         WHERE h_amount = 12345";
    assert_eq!(get(data), 1);
    assert_eq!(violated(&database.settings.database()), [] as [u32; 0]);
}

#[test]
fn bad_credit_is_written_in_front_and_cut_at_500() {
    let database = Database::new(Scale::miniature(2));
    let sql = database.sql();
    sql.execute("UPDATE customer SET c_credit = 'BC' WHERE c_id = 9", []).unwrap();
    let data = || -> String {
        let query = "SELECT c_data FROM customer WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 9";
        sql.query_row(query, [], |row| row.get(0)).unwrap()
    };
    let before = data();
    execute(&database, payment(Who::Id(9)));
    let once = format!("9 3 2 2 1 123.45|{before}");
    assert_eq!(data(), once[..once.len().min(500)]);
    for _ in 0..20 {
        execute(&database, payment(Who::Id(9)));
    }
    assert_eq!(data().len(), 500);
}

/// Clauses 2.5.2.2 and 2.6.2.2: of n customers of a name, ordered by first name, the one at n / 2
/// rounded up.
#[test]
fn the_middle_customer_of_a_name_is_chosen() {
    let database = Database::new(Scale::miniature(1));
    let sql = database.sql();
    let name = last_name(33);
    for (count, expected) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        sql.execute("UPDATE customer SET c_last = 'NOBODY' WHERE c_d_id = 2", []).unwrap();
        // First names in the reverse order of numbers: position k is customer count + 1 - k.
        sql.execute(
            "UPDATE customer SET c_last = ?1, c_first = char(65 + 50 - c_id) \
             WHERE c_d_id = 2 AND c_id <= ?2",
            rusqlite::params![name.as_str(), count],
        )
        .unwrap();
        let request = Request::OrderStatus { district: 2, who: Who::LastName(33) };
        let (_, reply) = execute(&database, request);
        assert_eq!(reply.customer, count + 1 - expected, "of {count}");
    }
}

#[test]
fn order_status_reads_the_last_order() {
    let database = Database::new(Scale::miniature(1));
    let lines = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1), (6, 1, 1)];
    let (_, new) = execute(&database, Request::NewOrder(order(&lines)));
    let (outcome, reply) =
        execute(&database, Request::OrderStatus { district: 2, who: Who::Id(7) });
    assert_eq!(outcome, Outcome::Committed);
    assert_eq!((reply.customer, reply.order, reply.lines), (7, new.order, 6));
    assert_eq!(reply.balance, -1000);
}

#[test]
fn delivery_takes_the_oldest_order_of_each_district_and_skips_empty_ones() {
    let database = Database::new(Scale::miniature(1));
    let sql = database.sql();
    let (outcome, reply) = execute(&database, Request::Delivery { carrier: 6 });
    assert_eq!(outcome, Outcome::Committed);
    assert_eq!(reply.delivered[..4], [43, 43, 43, 0]);
    let get = |what: &str| database.get(what);
    assert_eq!(get("SELECT count(*) FROM new_order WHERE no_o_id = 43"), 0);
    assert_eq!(get("SELECT sum(o_carrier_id) FROM orders WHERE o_id = 43"), 18);
    assert_eq!(
        get("SELECT count(*) FROM order_line WHERE ol_o_id = 43 AND ol_delivery_d IS NULL"),
        0
    );
    assert_eq!(get("SELECT sum(c_delivery_cnt) FROM customer"), 3);
    let paid = get("SELECT sum(c_balance) + 180 * 1000 FROM customer");
    assert_eq!(paid, get("SELECT sum(ol_amount) FROM order_line WHERE ol_o_id = 43"));
    // 11 counts what was delivered at load only; the database knows of no run.
    assert_eq!(violated(&database.settings.database()), [11]);

    sql.execute_batch(
        "DELETE FROM new_order WHERE no_d_id = 2;
         UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 2",
    )
    .unwrap();
    let (_, reply) = execute(&database, Request::Delivery { carrier: 6 });
    assert_eq!(reply.delivered[..3], [44, 0, 44]);
}

#[test]
fn stock_level_counts_distinct_items_of_the_last_twenty_orders() {
    let database = Database::new(Scale::miniature(2));
    let sql = database.sql();
    sql.execute_batch("UPDATE stock SET s_quantity = 50").unwrap();
    let level = |threshold| {
        let request = Request::StockLevel { district: 2, threshold };
        execute(&database, request).1.low_stock
    };
    assert_eq!(level(20), 0);
    // Three orders of the same item count once; its stock elsewhere does not matter.
    for _ in 0..3 {
        let lines = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 2, 1)];
        execute(&database, Request::NewOrder(order(&lines)));
    }
    sql.execute_batch(
        "UPDATE order_line SET ol_i_id = 100 WHERE ol_i_id <= 5 AND ol_o_id < 61;
         UPDATE stock SET s_quantity = 14 WHERE s_i_id <= 2 AND s_w_id = 1;
         UPDATE stock SET s_quantity = 5 WHERE s_i_id = 3 AND s_w_id = 2;
         UPDATE stock SET s_quantity = 15 WHERE s_i_id = 4 AND s_w_id = 1",
    )
    .unwrap();
    assert_eq!((level(14), level(15), level(16)), (0, 2, 3));
    // The order numbers 44 to 63 are the last twenty: an item of order 43 does not count.
    sql.execute_batch(
        "UPDATE stock SET s_quantity = 50;
         UPDATE stock SET s_quantity = 1 WHERE s_i_id = 199 AND s_w_id = 1;
         UPDATE order_line SET ol_i_id = 198 WHERE ol_i_id = 199;
         UPDATE order_line SET ol_i_id = 199 WHERE ol_d_id = 2 AND ol_o_id = 43",
    )
    .unwrap();
    assert_eq!(level(20), 0);
    sql.execute_batch("UPDATE order_line SET ol_i_id = 199 WHERE ol_d_id = 2 AND ol_o_id = 44")
        .unwrap();
    assert_eq!(level(20), 1);
}
