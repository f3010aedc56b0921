use super::*;

fn answers(lines: &str) -> Vec<Value> {
    let mut output = Vec::new();
    serve(lines.as_bytes(), &mut output, 20_000).expect("memory to write to");
    let text = String::from_utf8(output).expect("JSON is text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn every_access_mode_answers_for_every_mix_and_checks_what_it_reads() {
    for access in ["erew", "crew", "crcw"] {
        for writes in [0, 5, 50, 100] {
            let [filled, measured] = &answers(&format!(
                "{{\"fill\": {{\"access\": \"{access}\", \"cores\": 1, \"partitions\": 4}}}}\n\
                 {{\"measure\": {{\"access\": \"{access}\", \"cores\": 1, \"theta\": 0.99, \
                 \"writes_percent\": {writes}, \"seconds\": 0.01}}}}\n"
            ))[..] else {
                panic!("two answers");
            };
            assert_eq!(filled["filled"]["lost"], 0, "{filled}");
            assert_eq!(filled["filled"]["partitions"], 4);
            assert_eq!(filled["filled"]["log_bytes"], 1 << 20);
            let measured = &measured["measured"];
            assert!(measured["operations"][0].as_u64() > Some(0), "{measured}");
            assert!(measured["seconds"].as_f64() >= Some(0.01));
            if access == "crcw" {
                assert!(measured["shares"].is_null());
            } else {
                assert_eq!(measured["shares"], json!([1.0]));
            }
        }
    }
}

#[test]
fn cores_own_shares_that_sum_to_one() {
    if net::affinity::allowed_cores().len() < 2 {
        return;
    }
    let [_, measured] = &answers(
        "{\"fill\": {\"access\": \"erew\", \"cores\": 2, \"partitions\": 4}}\n\
         {\"measure\": {\"access\": \"erew\", \"cores\": 2, \"theta\": null, \"writes_percent\": 50, \
         \"seconds\": 0.01}}\n",
    )[..] else {
        panic!("two answers");
    };
    let measured = &measured["measured"];
    let share = |core: usize| measured["shares"][core].as_f64().expect("a share");
    assert!((share(0) + share(1) - 1.0).abs() < 1e-9);
    assert!((share(0) - 0.5).abs() < 0.02);
    assert_eq!(measured["operations"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_structure_by_others_is_filled_once_for_any_number_of_cores() {
    let cores = net::affinity::allowed_cores().len().min(2);
    let fill = |cores: usize| {
        format!(r#"{{"fill": {{"access": "papaya", "cores": {cores}, "partitions": {cores}}}}}"#)
    };
    let measure = |cores: usize| {
        format!(
            r#"{{"measure": {{"access": "papaya", "cores": {cores}, "theta": null, "writes_percent": 50, "seconds": 0.01}}}}"#
        )
    };
    let lines = [
        fill(1),
        fill(cores),
        measure(cores),
        measure(1),
        measure(100_000),
    ];
    let [first, again, many, one, too_many] = &answers(&lines.join("\n"))[..] else {
        panic!("five answers");
    };
    assert_eq!(first["filled"]["lost"], 0);
    assert_eq!(
        first["filled"]["overhead_bytes"],
        again["filled"]["overhead_bytes"]
    );
    for (answer, cores) in [(many, cores), (one, 1)] {
        let operations = answer["measured"]["operations"].as_array();
        assert_eq!(operations.map(Vec::len), Some(cores), "{answer}");
        assert_eq!(answer["measured"]["missed"], 0);
    }
    assert!(too_many.get("error").is_some());
}

#[test]
fn what_cannot_be_done_is_an_answer_and_the_next_one_is_taken() {
    let lines = [
        "nonsense",
        r#"{"measure": {"access": "erew", "cores": 1, "theta": null, "writes_percent": 5, "seconds": 0.01}}"#,
        r#"{"fill": {"access": "erew", "cores": 100000, "partitions": 100000}}"#,
        r#"{"fill": {"access": "erow", "cores": 1, "partitions": 4}}"#,
        r#"{"fill": {"access": "erew", "cores": 1, "partitions": 4}}"#,
        r#"{"measure": {"access": "erew", "cores": 1, "theta": 1.5, "writes_percent": 5, "seconds": 0.01}}"#,
        r#"{"measure": {"access": "erew", "cores": 1, "theta": null, "writes_percent": 101, "seconds": 0.01}}"#,
        r#"{"measure": {"access": "erew", "cores": 1, "theta": null, "writes_percent": 5, "seconds": -1}}"#,
    ];
    let answers = answers(&lines.join("\n"));
    assert_eq!(answers.len(), lines.len());
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.get("error").is_some(), number != 4, "{answer}");
    }
    let said = |number: usize| answers[number]["error"].as_str().unwrap_or_default();
    assert!(said(1).contains("EREW on 1 cores was not filled"));
    assert!(said(2).contains("100000 cores were asked for"));
}
