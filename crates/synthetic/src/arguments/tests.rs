use super::*;

fn parse_line(line: &str) -> Result<Request, String> {
    parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
}

fn options(line: &str) -> Options {
    match parse_line(line) {
        Ok(Request::Serve(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn options_are_read() {
    assert_eq!(options(""), Options::default());
    let given = options(
        "-p0 -l ::1 -c 9 --on-read cpu:10+lock:5 --on-update disk-write:64k --value-bytes 1m --folder /x \
         --file-bytes 8m --channel-bytes-per-second 2g",
    );
    assert_eq!(
        (given.port, given.listen.as_str(), given.connections),
        (0, "::1", 9)
    );
    assert_eq!(given.on_read.to_string(), "cpu:10+lock:5");
    assert_eq!(given.on_update.to_string(), "disk-write:65536");
    assert_eq!((given.value_bytes, given.file_bytes), (1 << 20, 8 << 20));
    assert_eq!(given.channel_bytes_per_second, 2 << 30);
    assert_eq!(
        options("-s /tmp/x").unix_socket,
        Some(PathBuf::from("/tmp/x"))
    );
    assert_eq!(parse_line("-p 0 -h"), Ok(Request::Help));
    assert_eq!(parse_line("-V"), Ok(Request::Version));
}

#[test]
fn the_channel_has_one_rate_wherever_it_is_given() {
    let work = "memory-stream-regulated:64k@";
    assert_eq!(
        options(&format!("--on-read {work}2g")).channel_bytes_per_second,
        2 << 30
    );
    let twice = format!("--on-read {work}2g --on-update {work}2048m");
    assert_eq!(options(&twice).channel_bytes_per_second, 2 << 30);
    let contrary = format!("--on-read {work}2g --channel-bytes-per-second 1g");
    let message = parse_line(&contrary).unwrap_err();
    assert!(message.contains("1073741824 and 2147483648"), "{message}");
}

#[test]
fn mistakes_name_the_option_and_what_it_takes() {
    for (line, part) in [
        ("-p 65536", "-p 65536: a port is 0 to 65535"),
        ("-p", "-p"),
        ("-c 0", "-c 0: connections"),
        (
            "--on-read gpu:1",
            "--on-read gpu:1: 'gpu:1' is an invalid kind of work",
        ),
        ("--value-bytes 0", "--value-bytes 0"),
        ("--value-bytes 33m", "--value-bytes 33m"),
        ("--file-bytes 2g", "--file-bytes 2g: a file is 1m to 1g"),
        (
            "--channel-bytes-per-second 1",
            "--channel-bytes-per-second 1",
        ),
        ("--color", "--color"),
        ("serve", "serve"),
    ] {
        let message = parse_line(line).expect_err(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}
