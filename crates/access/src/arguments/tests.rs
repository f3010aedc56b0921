use super::*;

fn parsed(line: &str) -> Result<Request, Error> {
    parse(line.split_whitespace().map(OsString::from))
}

#[test]
fn a_table_is_what_is_asked_for_unless_json_is() {
    let Ok(Request::Table(options)) = parsed(
        "--bench --items 1e6 --cores 2 --partitions 8 --access crcw --rounds 3 --seconds 0.4",
    ) else {
        panic!("a table");
    };
    assert_eq!(
        options,
        Options {
            items: 1_000_000,
            seconds: 0.4,
            rounds: 3,
            cores: Some(2),
            partitions: Some(8),
            access: Some(Access::Crcw),
            with_peers: false,
        }
    );
    assert_eq!(options.accesses(), [Access::Crcw]);
    let Ok(Request::Table(options)) = parsed("--peers") else {
        panic!("a table");
    };
    let labels: Vec<_> = options.accesses().iter().map(|one| one.label()).collect();
    assert_eq!(labels, ["EREW", "CREW", "CRCW", "papaya", "masstree"]);
    assert_eq!(
        parsed("--json --items 5000").expect("a request"),
        Request::Json { items: 5000 }
    );
}

#[test]
fn what_cannot_be_is_named() {
    for (line, named) in [
        ("--items 10", "--items takes 1000 to 4e9, not 10"),
        ("--seconds nan", "--seconds takes"),
        ("--rounds 0", "--rounds takes"),
        ("--partitions 0", "--partitions takes"),
        (
            "--access erow",
            "--access takes erew, crew, crcw, papaya or masstree, not erow",
        ),
        ("--frobnicate", "frobnicate"),
        ("--items", "--items"),
        ("3", "3"),
    ] {
        let said = parsed(line).expect_err("a mistake").to_string();
        assert!(said.contains(named), "{line}: {said}");
    }
}
