use super::*;

#[test]
fn values_that_cannot_be_true_are_missing_and_counted() {
    let mut sheet = Sheet::new(
        "hwmon",
        &[
            Channel::watts("server"),
            Channel {
                domain: "board".to_owned(),
                gives: Gives::Watts { never_zero: true },
            },
        ],
    );
    let mut row = [0.0; 2];
    for (number, is_told) in [
        (250.0, true),
        (0.0, true),
        (-1.0, false),
        (100_001.0, false),
        (f64::NAN, false),
        (f64::INFINITY, false),
    ] {
        sheet.begin(0);
        sheet.say(0, number, None);
        sheet.write(&mut row);
        assert_eq!(!row[0].is_nan(), is_told, "{number}");
        assert!(row[1].is_nan());
    }
    sheet.begin(0);
    sheet.say(1, 0.0, None);
    assert!(!sheet.has_value());
    let complaint = sheet.complaint();
    assert!(
        complaint.starts_with("5 values of 7 readings cannot be true")
            && complaint.contains(r#"power_watts{domain="server",meter="hwmon"} read -1"#),
        "{complaint}"
    );
}

#[test]
fn a_reading_fails_once_however_much_of_it_does() {
    let mut sheet = Sheet::new("snmp", &[Channel::watts("a"), Channel::watts("b")]);
    sheet.begin(0);
    sheet.fail(|| "no answer".to_owned());
    sheet.fail(|| "no answer again".to_owned());
    assert_eq!(sheet.complaint(), "no answer");
    sheet.begin(1);
    sheet.say(0, 1.0, None);
    assert_eq!(
        sheet.complaint(),
        "1 of 2 readings failed, the first: no answer"
    );
}
