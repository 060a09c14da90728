//! What the fuzz targets of both protocols do, on their seeds and on mutations of them.

#[path = "../../../../fuzz/src/dbms/mod.rs"]
mod entry;
#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn postgresql_clients_hold_whatever_a_server_says() {
    seeds::are("postgresql", &entry::postgresql::seeds());
    seeds::run("postgresql", |bytes| _ = entry::postgresql::check(bytes));
    // They are there to be answered, not only to be refused.
    for (name, said) in entry::postgresql::seeds() {
        let well = entry::postgresql::check(&said);
        let expected = match name {
            "plain" => 5,
            "at-once" | "cleartext" | "md5" | "no-tls" => 3,
            "after-error" => 1,
            _ => 0,
        };
        assert!(well >= expected, "{name}: {well}");
    }
}

#[test]
fn mariadb_clients_hold_whatever_a_server_says() {
    seeds::are("mariadb", &entry::mariadb::seeds());
    seeds::run("mariadb", |bytes| _ = entry::mariadb::check(bytes));
    for (name, said) in entry::mariadb::seeds() {
        let well = entry::mariadb::check(&said);
        let expected = match name {
            "refused" | "tls-alert" | "several-results" | "file-not-offered" => 0,
            "cached" | "not-cached" => 1,
            _ => 5,
        };
        assert!(well >= expected, "{name}: {well}");
    }
}
