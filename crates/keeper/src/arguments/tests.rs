use super::*;

fn read(line: &str) -> Result<Arguments, String> {
    match parse(line.split_whitespace().map(OsString::from)) {
        Ok(Request::Run(arguments)) => Ok(*arguments),
        Ok(Request::Print(text)) => Err(text),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn reads_every_option_and_leaves_the_rest_to_the_program() {
    let arguments = read(
        "--parent 7 --cores 0-2,5 --user 1:2 --scratch /a --scratch /b --folder /x --limit-nofile 99 --grace-seconds 0.5 \
         --status-descriptor 3 --control-group-procs /c/a --control-group-procs /c/b --network-namespace /n -- prog --parent -- x",
    )
    .unwrap();
    assert_eq!(arguments.parent.as_raw_nonzero().get(), 7);
    assert_eq!(arguments.cores, [0, 1, 2, 5]);
    assert_eq!(arguments.folder, Some(PathBuf::from("/x")));
    assert_eq!(
        arguments.scratch,
        [PathBuf::from("/a"), PathBuf::from("/b")]
    );
    assert_eq!(arguments.open_files, Some(99));
    assert_eq!(
        arguments.control_groups,
        [PathBuf::from("/c/a"), PathBuf::from("/c/b")]
    );
    assert_eq!(arguments.network_namespace, Some(PathBuf::from("/n")));
    assert_eq!(arguments.grace, Duration::from_millis(500));
    assert_eq!(arguments.status_descriptor, Some(3));
    assert_eq!(arguments.program, "prog");
    assert_eq!(arguments.program_arguments, ["--parent", "--", "x"]);
}

#[test]
fn says_what_is_wrong() {
    for (line, part) in [
        ("", "no PROGRAM"),
        ("--parent 7", "no PROGRAM"),
        ("--parent 7 --", "no PROGRAM"),
        ("-- true", "--parent PID is missing"),
        ("--parent 0 -- true", "--parent 0 is not a process id"),
        ("--parent -5 -- true", "--parent -5 is not a process id"),
        ("--parent x -- true", "--parent x is not a number"),
        ("--nice 7 -- true", "invalid option '--nice'"),
        ("--parent", "missing argument for option '--parent'"),
        (
            "--parent 7 --cores 3-1 -- true",
            "--cores 3-1 is not a list",
        ),
        ("--parent 7 --cores 0,,1 -- true", "is not a list"),
        (
            "--parent 7 --cores 99999 -- true",
            "core 99999 cannot be used",
        ),
        (
            "--parent 7 --grace-seconds -1 -- true",
            "--grace-seconds -1",
        ),
        (
            "--parent 7 --grace-seconds nan -- true",
            "--grace-seconds NaN is not",
        ),
        (
            "--parent 7 --limit-nofile -1 -- true",
            "--limit-nofile -1 is not a number",
        ),
        (
            "--parent 7 --status-descriptor 2 -- true",
            "must be above 2",
        ),
    ] {
        let message = read(line).unwrap_err();
        assert!(message.contains(part), "{line}: {message}");
    }
}
